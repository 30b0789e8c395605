# expected: wrong exception load_error
import sys
broke = False
for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if name in ("environ", "environb", "_environ", "ENV", "env") and value is not None:
            broke = broke or "@SECRET@" in str(value)

# include: answer.py
