"""The table builder over HTTP: its own API, PxWebApi, downloads, background jobs and what keeps them safe."""
