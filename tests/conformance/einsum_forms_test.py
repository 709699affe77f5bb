"""Einsum with letters that stand twice in an operand, with extents of 1, and of free extents, by one import with symbols. Values by
numpy, of operands that have the extents of their letters."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import OneNode, floats

SIZES = {"b": 2, "c": 3, "i": 4, "j": 5, "k": 3, "l": 2}
# Those with "..." have two axes of it.
EQUATIONS = ["ii->i", "ii", "...ii->...i", "...ii", "bii->b", "iij->ij", "iji->ji", "iii->i", "iijj->ij", "bii,ij->bj", "bii,bij->bj",
             "bii,ibb->b", "ij,jj->i", "ii,jj->ij", "ii,ii->i", "ii,ii", "i...i,...ij->...j", "ij,jk,kk->ik", "bik,bkj->bij", "bcik,bcjk->bcij",
             "bcij,bkij->bck", "ij,kl->jilk", "abij->ba"]


def extents_of(equation, sizes):
    """The shape of each operand."""
    sizes = {"a": 3, **sizes}
    terms = [term.partition("...") for term in equation.split("->")[0].split(",")]
    return [[sizes[letter] for letter in before] + ([3, 2] if dots else []) + [sizes[letter] for letter in after] for before, dots, after in terms]


class EinsumForms(OneNode):
    def compute(self, equation, operands, shapes, is_free):
        """What the program says, and the output."""
        names = [f"x{i}" for i in range(len(operands))]
        graph = helper.make_graph([helper.make_node("Einsum", names, ["y"], equation=equation)], "one",
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        return self.run_model(graph, 12, dict(zip(names, operands)), lambda answer, found: (answer, found.get("0")), buckets="*" if is_free else "")

    def check_values(self, equation, operands, shapes, is_free, whole=None):
        """`whole`: the operands with the extents of their letters, where these are others."""
        answer, found = self.compute(equation, operands, shapes, is_free)
        self.assertRegex(answer, "^ok .* symbolic" if is_free else "^ok ")
        right = np.einsum(equation, *[np.asarray(each, np.float64) for each in whole or operands])
        self.assertEqual(found.shape, right.shape)
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)

    def test_of_fixed_and_free_extents(self):
        """Of free ones each axis of each operand has a name of its own."""
        for equation in EQUATIONS:
            for sizes in (SIZES, dict.fromkeys(SIZES, 1), {letter: 3 * size for letter, size in SIZES.items()}):
                with self.subTest(equation=equation, sizes=sizes):
                    operands = [floats(*shape) for shape in extents_of(equation, sizes)]
                    free = [[f"{name}{axis}" for axis in range(each.ndim)] for name, each in zip("MNK", operands)]
                    self.check_values(equation, operands, [each.shape for each in operands], False)
                    self.check_values(equation, operands, free, True)

    def test_one_letter_has_one_extent(self):
        for equation, shape in (("ii->i", (3, 4)), ("ii->i", (1, 4)), ("...ii", (2, 4, 1)), ("iji->j", (2, 4, 3))):
            for is_free in (False, True):
                with self.subTest(equation=equation, shape=shape, is_free=is_free):
                    names = [f"N{axis}" for axis in range(len(shape))]
                    answer, found = self.compute(equation, [floats(*shape)], [names if is_free else shape], is_free)
                    self.assertRegex(answer, "^error ")
                    self.assertNotIn("internal error", answer)
                    self.assertIsNone(found)

    def test_extents_of_one_beside_others(self):
        for equation, first, second in (("ij,jk->ik", (3, 1), (5, 4)), ("ij,jk->ik", (3, 5), (1, 4)), ("bij,bjk->bik", (1, 3, 5), (2, 5, 4)),
                                        ("bij,bjk->bik", (2, 3, 5), (1, 5, 4)), ("ij,ij->i", (3, 1), (1, 5)), ("bij,bij->b", (2, 1, 4), (2, 3, 1))):
            with self.subTest(equation=equation, first=first, second=second):
                a, b = floats(*first), floats(*second)
                terms, sizes = equation.split("->")[0].split(","), {}
                for term, shape in zip(terms, (first, second)):
                    sizes.update((letter, max(extent, sizes.get(letter, 1))) for letter, extent in zip(term, shape))
                whole = [np.broadcast_to(each, [sizes[letter] for letter in term]) for each, term in zip((a, b), terms)]
                self.check_values(equation, [a, b], [first, second], False, whole)

    def test_a_free_extent_beside_a_number(self):
        """It is that number, or 1: one plan serves both."""
        b = floats(5, 4)
        for rows, depth in ((3, 5), (3, 1), (1, 5), (7, 1)):
            with self.subTest(rows=rows, depth=depth):
                a = floats(rows, depth)
                self.check_values("ij,jk->ik", [a, b], [["N", "K"], b.shape], True, [np.broadcast_to(a, (rows, 5)), b])


if __name__ == "__main__":
    unittest.main()
