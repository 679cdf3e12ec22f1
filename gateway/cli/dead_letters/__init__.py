"""Dead letters on the command line: what `queue peek` shows of them, and how `queue resend` sends them back."""
