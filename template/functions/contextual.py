"""Functions that need more than their argument: the parameters, other resources, or a condition.

The table declares them here; fold.py and residual.py evaluate them.
"""

from ..language import Function, ListForm

FUNCTIONS = (
    Function("get_param", "The value of a parameter, or of a part of it.", "2013-05-23", "2016-10-14"),
    Function("get_resource", "The reference of another resource, usually its physical id.", "2013-05-23"),
    Function("get_attr", "An attribute of another resource, or a part of it.", "2013-05-23"),
    Function("get_file", "A function for including a file inline.", "2013-05-23"),
    Function("resource_facade", "The parent stack's definition of this stack's resource.", "2013-05-23"),
    Function(
        "if",
        "One of two values, chosen by a condition.",
        "2016-10-14",
        form=ListForm(2, 3, "[condition, value if true, value if false]"),
    ),
    Function("not", "The negation of a condition.", None, "2016-10-14"),
    Function("and", "True if all of the conditions are true.", None, "2016-10-14"),
    Function("or", "True if one of the conditions is true.", None, "2016-10-14"),
)
