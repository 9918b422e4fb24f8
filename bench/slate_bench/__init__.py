"""slate-bench: measures programs that share a GPU, under slate and its rivals, and reports.

Start reading at cli.py. A configuration (configurations.py) says how programs are started; runner.py starts them
together and takes their times; rows.py writes what was measured; report.py and its figures read only those rows.
document.py makes the tables of docs/results.md from rows that are kept in bench/results/.
"""
