"""Discrete-event engine of the strided-repeat mechanism, on simpy: its vector instructions (`vector`), repeat by
repeat, and the banks of its buffer (`ports`, docs/reference/a2a3.md section 8). Everything around them is
`event_dataflow`.
"""
