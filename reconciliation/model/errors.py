"""What keeps a reconciliation from running at all: exit code 2, with a text that says what to do."""


class SourceError(Exception):
    """The realm cannot be read; the text is for the operator."""


class SetupError(Exception):
    """Something this machine lacks; the text names the command that installs it."""
