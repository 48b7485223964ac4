"""The fast engine of chips whose pipes pass tiles through one buffer: the same cycles and causes as the event engine.

It is a recurrence without an event queue. Every pipe is in one of a few states with a known time of its next step
(`pipe_steps`); the scalar unit issues as far as some pipe needs it (`issue`); block requests are served in the order of
(cycle, operation) at the ports (`pipe_steps`).
`machine_steps` combines them. All of them work on rows of integers, named after the objects of the event engine
(`state`), in lists of rows or in raw memory (`execution_rows`), and run interpreted,
or compiled if numba is installed and the run is long (`tile_simulation`, `compiled_machine`). The costs are
rules of the mechanism, called by every engine (`execution.transfer_timing`, `strided.strided_instructions`,
`vector_function.function_timing`).

The operation tree is turned into rows once per distinct instruction (`encoding`) and read as a stream of tokens
(`encoding`). Between two trips of a loop the whole state relative to now is compared with those of earlier trips; if
it repeats, the trips in between repeat too and are skipped (`skipping`). Their records are computed on demand
(`execution_rows`).
"""
