def build_order(needs):
    pass
