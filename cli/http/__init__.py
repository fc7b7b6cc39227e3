"""The HTTP server of the API.

It extends waitress, for no server that was tried in its place (one process, four threads, the attacks of
`tests/unit/cli/test_serving.py`) withstands them by its settings.  Of 51 malformed requests waitress 3.0.2
itself refuses 36, gunicorn 27.0.1 (gthread) 43, uvicorn 0.54.0 with h11 and a2wsgi 1.10.10 31, granian 2.8.7
24; each answers at least one and then the request hidden behind it.  None answers a health check while all
threads are busy, limits the connections of one address, ends a body that arrives a byte at a time, or has
errors in the shape of the API's.  80 unfinished bodies hold up all other requests to gunicorn, granian and
uvicorn, in which the application reads from the client; these have no limit of a body either.  Granian is
faster where a request costs nothing but the server; the others are not, or by little.

Nor does the sample HAProxy configuration (2.6, 16 threads behind it) close these gaps: 80 unfinished bodies
still hold up the three, small ones until `http-buffer-request` is set, and those above HAProxy's buffer of
16 KiB also then; waitress continues.  All but this server leave a health check waiting until a busy thread is
free (3.4 s beside 16 requests of 4 s, against 0.0 s), and waitress drops what is in progress at a stop.
"""
