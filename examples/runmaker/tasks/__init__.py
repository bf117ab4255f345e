"""All tasks and all runs."""

from ..script import Script, Task
from . import mail, settings, shop, table

FAMILIES = (mail, settings, shop, table)
TASKS: list[Task] = [task for family in FAMILIES for task in family.TASKS]
SCRIPTS: list[Script] = [script for family in FAMILIES for script in family.SCRIPTS]
