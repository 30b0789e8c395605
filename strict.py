import re
from lib.registry import Judged
P=re.compile(r"\s*<think>((?:(?!</?(?:think|answer)>).)*)</think>\s*<answer>((?:(?!</?(?:think|answer)>).)*)</answer>\s*",re.S)
def strict(predictions, targets):
    out=[]
    for p,t in zip(predictions,targets,strict=True):
        m=P.fullmatch(p); r=bool(m) and m[2].strip()==t.strip()
        out.append(Judged({"m":float(r),"wf":0.0*bool(m)},match=r))
    return out
