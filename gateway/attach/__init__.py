"""From an ATTACH to a link, or to its refusal; and what a link has to do before it goes."""
