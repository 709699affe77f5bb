"""What tests of PyTorch's formats share: how close results are to torch's."""

from fixture_case import FixtureCase


class TorchCase(FixtureCase):
    TOLERANCE, LEAST = 1e-4, 1e-3
