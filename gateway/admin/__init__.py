"""Pages for monitoring a gateway (`/health`, `/metrics`, `/api`) and commands over plain HTTP, on the gateway's own
loop, in steps that take well below a millisecond each. A page is an entry in `gateway/admin/pages.py`."""
