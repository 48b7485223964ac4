"""The linter of TPC assembly: the issue rules, and the steps from bundle to bundle that they follow."""
