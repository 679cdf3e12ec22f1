"""The console's HTTP: routes, templates, login, server-sent events."""
