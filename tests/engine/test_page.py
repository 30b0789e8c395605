import re
from pathlib import Path

import torch
from conftest import after

PAGE = Path(__file__).parents[2] / "docs/engine.md"


def test_the_example_samples_scores_and_has_gradients_in_twenty_lines(tiny_folder):
    [code] = re.findall("```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 20
    torch.manual_seed(0)
    known = {}
    exec(code.replace("my_model", str(tiny_folder)), known)
    answers, policy = known["answers"], known["policy"]
    assert set(answers) == {(prompt, copy) for prompt in range(4) for copy in range(8)}
    assert len({tuple(answer.ids) for answer in answers.values()}) > 8
    # the example's last answer has the log-probs that it was sampled with, and those of the policy's own scoring
    sampled = torch.tensor(answers[3, 7].logps)
    torch.testing.assert_close(known["logp"].detach(), sampled, rtol=0, atol=1e-4)
    scored = policy(after(known["prompts"][3], answers[3, 7].ids))[0]
    torch.testing.assert_close(known["logp"], scored, rtol=0, atol=1e-4)
    assert any(answer.finished for answer in answers.values())
    gradients = {name: p.grad for name, p in policy.named_parameters() if "lora_B" in name}
    assert gradients and all(gradient.abs().max() > 0 for gradient in gradients.values())
