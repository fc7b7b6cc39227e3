"""Random trees of a template's functions, for laws about values that are known early or late."""

import json

from hypothesis import strategies as st
from stoker.template.errors import TemplateError

LEAF = "<leaf>"


def trees_of(functions):
    """Trees with at least one leaf for `planted`.

    :param functions: makes calls, and maps and lists, of inner trees.
    """
    leaves = st.sampled_from([LEAF, LEAF, LEAF, None, True, 1, "a", "a,b", "%"])
    return st.recursive(leaves, functions, max_leaves=8).filter(lambda tree: LEAF in str(tree))


def planted(tree, leaf):
    """The tree with something in the place of its leaves."""
    if tree == LEAF:
        return leaf
    if isinstance(tree, dict):
        return {key: planted(item, leaf) for key, item in tree.items()}
    return [planted(item, leaf) for item in tree] if isinstance(tree, list) else tree


class Answers:
    """A lookup in which every reference, attribute and secret has the same value."""

    def __init__(self, value):
        self.value = value

    def reference_id(self, resource):
        return self.value

    def attribute(self, resource, name):
        return self.value

    def unseal(self, token):
        return self.value


def outcome(make):
    """The value, as text in which 1 and true differ; or that there is none."""
    try:
        return json.dumps(make(), sort_keys=True)
    except TemplateError:
        return "refused"
