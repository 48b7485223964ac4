"""The fast engine of chips whose pipes pass tiles through one buffer: the same cycles and causes as the event engine.

It is a recurrence without an event queue. Every pipe is in one of a few states and knows when it goes on
(`pipe_steps`); the scalar unit issues as far as some pipe needs it (`issue`); block requests are served in the order of
(cycle, operation) at the ports (`pipe_steps`).
`machine_steps` ties them together. All of it works on rows of integers, named after the objects of the event engine
(`state`, `state_rows`), in lists of rows or in bare memory (`execution_rows`), and runs interpreted,
or compiled where numba is there and the work pays for it (`tile_simulation`, `compiled_machine`). What anything costs
is a rule of the mechanism, called by every engine (`execution.transfer_timing`, `strided.strided_instructions`,
`vector_function.function_timing`).

The operation tree is turned into rows once per distinct instruction (`encoding`) and read as a stream of tokens
(`encoding`). Between two trips of a loop the whole state relative to now is compared with those of earlier trips; where
it repeats, the trips in between repeat too and are not executed again (`skipping`). What is reported of them is worked
out when it is read (`execution_rows`).
"""
