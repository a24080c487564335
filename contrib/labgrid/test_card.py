"""The card of a place is connected to the host, checked, and given back to the board.

`nandscope check` writes JUnit XML of its own (nandscope.xml), one test case a question; this test fails where the card is a counterfeit, fails or is
slower than its class, and is skipped where nothing could be decided.
"""
import os
import subprocess

import pytest

NANDSCOPE = os.environ.get("NANDSCOPE", "nandscope")
VERDICTS = {6: "counterfeit", 7: "failing", 8: "slower than its class"}


@pytest.fixture
def card(target):
    mux = target.get_driver("USBSDMuxDriver")
    mux.set_mode("host")
    yield target.get_driver("USBStorageDriver").storage.path
    mux.set_mode("dut")


def test_card(card):
    done = subprocess.run([NANDSCOPE, "check", card, "-q", "--format", "junit", "-o", "nandscope.xml"], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("nothing failed; not everything was tested, because nothing was written")
    assert done.returncode == 0, VERDICTS.get(done.returncode, done.stderr)
