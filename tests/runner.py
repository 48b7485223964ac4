import numpy as np
from castsim import run
from real_forms import BYTES
def inputs(w):
    rng=np.random.default_rng(1); out={}
    for n,k in w.loaded.items(): out[n]='random:1'
    if w.form.operation=='tgather':
        a,b=w.loaded['in0'],w.loaded['in1']
        out['in1']=rng.integers(0,a.rows*a.cols,w.extents['%t1'],dtype=np.int32)
    for a in w.arguments:
        n=a[1:].split(':')[0]
        if n=='in0': out.setdefault(n,'random:1')
    return out
def run_form(w,path):
    open(path,'w').write(w.text)
    if w.opaque:
        return run(path,timing_only=True,args=w.args)
    return run(path,args=w.args,inputs=inputs(w))
