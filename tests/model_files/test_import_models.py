"""transformers' package of models is imported as it imports itself, with its files read once."""

import json
import subprocess
import sys

import pytest

SCAN = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import transformers
from transformers.utils import import_utils
from regard.model_files import import_models as ours
{before}
del opened[:]
{models}
read = sum("transformers" in name and "models" in name and name.endswith(".py") for name in opened)
import transformers.models as models
from transformers import BertModel
told = [sorted(models._modules), sorted(models._class_to_module.items()), models.bert.__name__, BertModel.__module__]
reader = getattr(import_utils, ours.READER, None)
print(json.dumps([read, told, reader and reader.__module__]))
"""


def scan(models: str, before: str = "") -> list:
    """How many files were read for the second time, what the package then has, and whose reader there is."""
    code = SCAN.format(models=models, before=before)
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


@pytest.mark.long  # 12 s: two interpreters read all of transformers
def test_the_same_models_without_reading_their_files_again() -> None:
    plain, alone, _ = scan("import transformers.models")
    ours, same, reader = scan("ours.import_models()")
    assert plain > 1000
    assert ours < 10
    assert same == alone
    assert len(same[1]) > 1000
    assert reader == "transformers.utils.import_utils"  # which was put back


@pytest.mark.long  # 6 s: another does
def test_a_version_that_reads_them_in_another_way_does_so() -> None:
    read, told, _ = scan("ours.import_models(); import transformers.models", "ours.READER = 'what_no_version_has'")
    assert read > 1000
    assert told[3] == "transformers.models.bert.modeling_bert"
