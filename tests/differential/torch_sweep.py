"""Random calls of PyTorch's operators, or networks of torchvision, as exported programs beside eager torch:
python torch_sweep.py --models 100 --outputs 20 --seed 1; python torch_sweep.py --networks all.

Needs torch (tests/fixtures/requirements-pytorch.txt), for networks torchvision, and the built program. Prints each output that
differs, with what made it, and ends with their number.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from comparison import difference, said
from torch_cases_random import random_model

warnings.simplefilter("ignore")


class Calls(torch.nn.Module):
    def __init__(self, calls):
        super().__init__()
        self.calls = [call for _, call in calls]

    def forward(self, inputs):
        # What is an input is told apart.
        return [call(inputs).clone() for call in self.calls]


def ours(program, runs, level):
    """What the program makes of each of the inputs; a text where it fails."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.export.save(program, folder / "model.pt2")
        why = said(folder, "compile", "model.pt2", "-O", str(level), "-o", "model.tar")
        for inputs in runs:
            np.savez(folder / "in.npz", **inputs)
            why = why or said(folder, "run", "model.tar", "-i", "in.npz", "-o", "out.npz")
            if why is not None:
                return why
            with np.load(folder / "out.npz") as archive:
                made.append({key: archive[key] for key in archive.files})
    return made


def compared(name, program, runs, labels, level):
    """Of runs, which are inputs and results: how many outputs there are, and how many are wrong."""
    signature = program.graph_signature
    got = ours(program, [{key: value.numpy() for key, value in zip(signature.user_inputs, inputs)} for inputs, _ in runs], level)
    count = sum(len(results) for _, results in runs)
    if isinstance(got, str):
        print(f"{name}: {got[:1000]}", flush=True)
        return count, count
    wrong = 0
    for made, (inputs, results) in zip(got, runs):
        for key, want, label in zip(signature.user_outputs, results, labels):
            why = difference(made[key], want.detach().numpy()) if key in made else "it is not there"
            if why:
                wrong += 1
                shapes = ", ".join(str(list(each.shape)) for each in inputs)
                print(f"{name} of {shapes[:200]}, {key} ({label}): {why}", flush=True)
    return count, wrong


def runs_of(module, inputs):
    """Each of the inputs beside what eager torch makes of it: tensors, in order."""
    with torch.no_grad():
        return [(each, torch.utils._pytree.tree_flatten(module(*each))[0]) for each in inputs]


def random_models(arguments):
    for index in range(arguments.models):
        seed = arguments.seed * 100_000 + index
        free = index % 3 == 2
        draw, calls = random_model(seed, arguments.outputs, free)
        module = Calls(calls).eval()
        dynamic = None
        if free:
            extent = torch.export.Dim("extent", min=2, max=16)
            dynamic = ([{0: extent} if each.dim() and each.shape[0] == draw.extent else None for each in draw.inputs],)
        try:
            with torch.no_grad():
                program = torch.export.export(module, (draw.inputs,), dynamic_shapes=dynamic, strict=False)
                results = module([each.clone() for each in draw.inputs])
        except Exception as error:  # what torch itself does not export
            print(f"seed {seed}: not exported: {str(error).splitlines()[0][:120]}", flush=True)
            yield 0, 0
            continue
        yield compared(f"seed {seed}", program, [(draw.inputs, results)], [label for label, _ in calls], arguments.level)


NETWORKS = ("resnet18 resnet50 resnext50_32x4d wide_resnet50_2 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large efficientnet_b0 efficientnet_b1 "
            "efficientnet_v2_s vit_b_16 swin_t swin_v2_t convnext_tiny regnet_y_400mf regnet_x_400mf densenet121 squeezenet1_0 squeezenet1_1 "
            "shufflenet_v2_x0_5 shufflenet_v2_x1_0 mnasnet0_5 mnasnet1_0 googlenet inception_v3 alexnet vgg11 vgg11_bn maxvit_t").split()
SEGMENTERS = "segmentation.fcn_resnet50 segmentation.deeplabv3_mobilenet_v3_large segmentation.lraspp_mobilenet_v3_large".split()


def networks(arguments):
    import torchvision
    names = NETWORKS + SEGMENTERS if arguments.networks == "all" else arguments.networks.split(",")
    for name in names:
        torch.manual_seed(arguments.seed)
        home = torchvision.models.segmentation if name.startswith("segmentation.") else torchvision.models
        options = {"weights": None}
        if name.startswith("segmentation."):
            options["weights_backbone"] = None
        if name in ("googlenet", "inception_v3"):
            options |= {"init_weights": False, "aux_logits": False}
        module = getattr(home, name.split(".")[-1])(**options).eval()
        size = 299 if name == "inception_v3" else 224 if name.startswith(("vit", "maxvit", "swin")) else arguments.size
        batch = torch.export.Dim("batch", min=2, max=64)
        images = [(torch.rand(count, 3, size, size),) for count in (2, 3)]
        with torch.no_grad():
            program = torch.export.export(module, images[0], dynamic_shapes=({0: batch},))
        runs = runs_of(module, images)
        counts = compared(name, program, runs, [name] * len(runs[0][1]), arguments.level)
        print(f"{name}: {'equal' if counts[1] == 0 else 'wrong'}", flush=True)
        yield counts


def main(networks, random_models, models, size):
    """Parses the arguments and runs; the generators give, of each model, its outputs and how many of them are wrong. `models`,
    `size`: how many models, and the pictures' extents, unless it is said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=models)
    parser.add_argument("--outputs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--networks", help="names behind commas, or all")
    parser.add_argument("--size", type=int, default=size)
    arguments = parser.parse_args()
    outputs = wrong = count = 0
    for made, bad in networks(arguments) if arguments.networks else random_models(arguments):
        count, outputs, wrong = count + 1, outputs + made, wrong + bad
    print(f"{count} models, {outputs} outputs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(networks, random_models, models=100, size=96)
