"""com.microsoft's Tokenizer, and what classic text models do with its tokens, compared with ONNX Runtime on the same model."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from contrib_ops_test import MICROSOFT, PeerCase

TEXTS = np.array(["a bc  def", "", "  x y", "ab,cd e", "hello", "héé 日本 a"])


class Tokenizer(PeerCase):
    def check_nodes(self, nodes, texts, outputs=("y",), domains=(MICROSOFT,)):
        graph = helper.make_graph(nodes, "tokens", [helper.make_tensor_value_info("x", TensorProto.STRING, texts.shape)],
                                  [helper.make_empty_tensor_value_info(name) for name in outputs])
        ours, peer = self.run_both(graph, {"x": texts}, 17, domains=domains)
        for found, right in zip(ours, peer):
            self.assertEqual((found.shape, found.tolist()), (right.shape, right.tolist()), nodes[0])

    def check_tokens(self, texts=TEXTS, mark=0, mincharnum=1, pad_value="#", **attributes):
        self.check_nodes([helper.make_node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, mark=mark, mincharnum=mincharnum,
                                           pad_value=pad_value, **attributes)], texts)

    def test_separators(self):
        for mark in (0, 1):
            for least in (1, 2):
                self.check_tokens(separators=[" "], mark=mark, mincharnum=least)
        self.check_tokens(separators=[" ", ","])
        self.check_tokens(separators=["[ ,]+"], pad_value="")
        self.check_tokens(np.array(["a, b,c", "xx"]), separators=[", ", ","])
        self.check_tokens(np.array(["a, b,c", "xx"]), separators=[",", ", "])
        self.check_tokens(np.array(["aXXXb", "X"]), separators=["X|XX"], pad_value="nothing")

    def test_letters(self):
        for mark in (0, 1):
            self.check_tokens(separators=[""], mark=mark)

    def test_expressions(self):
        for expression in ("[a-z]+", "[a-c]", "b(c)?", "a|ab", r"\p{L}+"):
            self.check_tokens(tokenexp=expression)
            self.check_tokens(tokenexp=expression, mark=1, mincharnum=2)

    def test_rows(self):
        texts = np.array([["a b", "c"], ["d", "e f g"]])
        self.check_tokens(texts, separators=[" "])
        self.check_tokens(texts, separators=[" "], mark=1, pad_value="pad")

    def test_no_tokens(self):
        for mark in (0, 1):
            self.check_tokens(np.array(["", "  "]), separators=[" "], mark=mark)

    def test_counts_of_words(self):
        """As exporters of classic models write a vectorizer of texts: in lower case, in tokens, counted."""
        texts = np.array(["The cat the dog", "A bird, the CAT", "nothing here", ""])
        nodes = [
            helper.make_node("StringNormalizer", ["x"], ["lower"], case_change_action="LOWER", locale="C"),
            helper.make_node("Tokenizer", ["lower"], ["tokens"], domain=MICROSOFT, mark=0, mincharnum=1, pad_value="#",
                             tokenexp="[a-z]+"),
            helper.make_node("TfIdfVectorizer", ["tokens"], ["y"], mode="TF", min_gram_length=1, max_gram_length=2,
                             max_skip_count=0, ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5],
                             pool_strings=["bird", "cat", "dog", "the", "the", "cat", "the", "dog"]),
        ]
        self.check_nodes(nodes, texts)


if __name__ == "__main__":
    unittest.main()
