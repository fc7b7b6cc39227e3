"""The rules of the policy for the routes of this feature."""

from ...api.policy import MEMBER, READER, READER_OR_STACK_USER, Rule

RULES: tuple[Rule, ...] = (
    *(
        (f"cloudformation:{action}", check, f"{action} of the CloudFormation API.", "POST", "/v1/")
        for action, check in (
            ("CancelUpdateStack", MEMBER),
            ("CreateStack", MEMBER),
            ("DeleteStack", MEMBER),
            ("DescribeStackEvents", READER),
            ("DescribeStackResource", READER_OR_STACK_USER),
            ("DescribeStackResources", READER),
            ("DescribeStacks", READER),
            ("EstimateTemplateCost", READER),
            ("GetTemplate", READER),
            ("ListStackResources", READER),
            ("ListStacks", READER),
            ("UpdateStack", MEMBER),
            ("ValidateTemplate", READER),
        )
    ),
)
