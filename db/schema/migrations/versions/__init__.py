"""The steps of the schema: from 0002 on, each has an expand part and a contract part."""
