"""Pages for whoever watches a gateway: `/health` and `/metrics` over plain HTTP, on the gateway's own loop, in steps
that take well below a millisecond each. A page is an entry in `gateway/admin/station.py`. Imports nothing."""
