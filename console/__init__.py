"""The console: what several gateways of a realm say of themselves, as pages for operators."""
