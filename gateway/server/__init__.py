"""Sockets: listeners, TLS, WebSocket, the SASL handshake, and the loop around a gateway."""
