def check() -> None: pass
