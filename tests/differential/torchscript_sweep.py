"""Networks of torchvision as TorchScript files, traced, and scripted and frozen, with a free batch, beside eager torch; or random calls of
PyTorch's operators traced: python torchscript_sweep.py --networks all; python torchscript_sweep.py --models 40 --outputs 20 --seed 1.

Needs torch (tests/fixtures/requirements-pytorch.txt), for networks torchvision, and the built program. Prints each output that
differs, with what made it, and ends with their number.
"""

import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from comparison import difference, said
from torch_cases_random import random_model
from torch_sweep import Calls, main

NETWORKS = ("resnet18 mobilenet_v2 squeezenet1_1 shufflenet_v2_x0_5 mobilenet_v3_small efficientnet_b0 mnasnet0_5 regnet_y_400mf densenet121 "
            "convnext_tiny vit_b_16 swin_t").split()
warnings.simplefilter("ignore")


class Flat(torch.nn.Module):
    """The inputs one by one, the results as a tuple."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs):
        return tuple(self.module(list(inputs)))


def names_of(script):
    return re.findall(r"(\w+): Tensor", script.code[:script.code.index("->")])


def ours(script, inputs, batch, level):
    names = names_of(script)
    shapes = " ".join(f"{name}:[{','.join(map(str, [batch, *each.shape[1:]] if batch else each.shape))}]" for name, each in zip(names, inputs))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script.save(str(folder / "model.pt"))
        np.savez(folder / "in.npz", **dict(zip(names, [each.numpy() for each in inputs])))
        why = said(folder, "compile", "model.pt", "--input-shapes", shapes, "-O", str(level), "-o", "model.tar") or said(
            folder, "run", "model.tar", "-i", "in.npz", "-o", "out.npz")
        if why is not None:
            return why
        with np.load(folder / "out.npz") as archive:
            return {key: archive[key] for key in archive.files}


def compared(name, script, inputs, results, labels, batch, level):
    """How many outputs there are, and how many are wrong."""
    got = ours(script, inputs, batch, level)
    if isinstance(got, str):
        print(f"{name}: {got[:1500]}", flush=True)
        return len(results), len(results)
    wrong = 0
    for i, (want, label) in enumerate(zip(results, labels)):
        key = f"output_{i}" if len(results) > 1 else "output"
        why = difference(got[key], want.detach().numpy()) if key in got else "it is not there"
        if why:
            wrong += 1
            print(f"{name}, {key} ({label}): {why}", flush=True)
    return len(results), wrong


def networks(arguments):
    import torchvision
    torch.backends.mha.set_fastpath_enabled(False)
    for name in NETWORKS if arguments.networks == "all" else arguments.networks.split(","):
        torch.manual_seed(arguments.seed)
        module = getattr(torchvision.models, name)(weights=None).eval()
        size = 224 if name.startswith(("vit", "swin")) else arguments.size
        image = torch.rand(2, 3, size, size)
        with torch.no_grad():
            result = module(image)
            forms = {"traced": torch.jit.trace(module, image[:1]), "frozen": torch.jit.freeze(torch.jit.script(module))}
        for form, script in forms.items():
            counts = compared(f"{name} {form}", script, (image,), [result], [name], "N", arguments.level)
            print(f"{name} {form}: {'equal' if counts[1] == 0 else 'wrong'}", flush=True)
            yield counts


def random_models(arguments):
    for index in range(arguments.models):
        seed = arguments.seed * 100_000 + index
        draw, calls = random_model(seed, arguments.outputs, False)
        module = Flat(Calls(calls)).eval()
        inputs = tuple(draw.inputs)
        try:
            with torch.no_grad():
                script = torch.jit.trace(module, tuple(each.clone() for each in inputs), check_trace=False)
                results = module(*[each.clone() for each in inputs])
        except RuntimeError as error:  # what torch itself does not trace
            print(f"seed {seed}: not traced: {str(error).splitlines()[0][:120]}", flush=True)
            yield 0, 0
            continue
        yield compared(f"seed {seed}", script, inputs, results, [label for label, _ in calls], None, arguments.level)


if __name__ == "__main__":
    main(networks, random_models, models=40, size=64)
