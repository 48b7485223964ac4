"""Discrete-event engine of the vector-function mechanism, on simpy: its vector unit (all else: `event_dataflow`).

A launched function is a set of processes. The front end (`front_end`) walks the loop nests and sends trip after trip
through the serial convert port; every trip (`trip`) loads, computes and hands its results to the store queue
(`stores`), which writes in program order and obeys memory barriers. Loads and stores meet the transfers at the ports
of the buffer (`ports`). Rules: docs/reference/a5.md sections 6.2, 7 and 8.

Facts of this mechanism may have two decimals, so processes carry exact times in ticks of 1/100 cycle; they wake up in
the first whole cycle that is not earlier, and a function's end is rounded once. Program order decides all ties.
"""
