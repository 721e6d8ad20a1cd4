"""REST under /api/v1: routes, what they take and answer, and their description (OpenAPI).

May import web's other modules but ``app`` and ``main``.
"""
