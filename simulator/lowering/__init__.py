"""Planning of casts: the chain of a target's instructions that meets a specification, proven or refuted.

found = plan(CastRequest("f16", "i8", "a5", spec="tosa"))
found.verdict, found.chain, found.cost.cycles_per_element, found.text, found.counterexample
"""
