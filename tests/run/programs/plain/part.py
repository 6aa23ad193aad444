def name():
    return __name__
