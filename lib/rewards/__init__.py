"""Judging what a model wrote: the shelf of rewards, and the judge that calls them.

A reward is registered with `@register_reward("name")`. It is called by keyword, once per turn for the answers of all
prompts (collect_rollouts.py: for one rollout at a time, from several threads), and names as parameters what it needs:

    predictions  list[str], what the model wrote (`completions` is the same list)
    well_formed  list[bool], whether each has the configured format (lib/text/formats.py), before any reward has a say
    right        list[bool], whether each is well-formed and its answer matches the target's
    targets      list[str], as the data set has them
    prediction_answers, target_answers   list[str], what the extractors find; "" for nothing, or in a malformed text
    match        (prediction_answer, target_answer) -> bool, the configured equality; blank answers never match
    prompts      list, the user's questions; of later attempts too, still the first one (in TRL: what TRL calls prompts)
    rows         list[dict], every column of each prediction's row
    <column>     list, one value per prediction, for any column of the data set; `**kwargs` receives all columns
    <option>     value of `reward.options` in the config; a parameter after `*` with a default, whose type it must have,
                 and which no column fills

It returns for each prediction a finite number, a dict of named components whose sum is the reward, or a `Judged`, which
may decide the match and what is malformed as well, or say that a prediction could not be judged and must be left out of
the loss. A malformed prediction is never right. One that the token limit cut off is malformed whatever a reward says,
and earns nothing above zero, unless `reward.accept_cut` is set. Where a column has the name of something above, the
latter wins. Text of the model that cannot be read earns zero; anything else that goes wrong raises, and the run stops:
with a RewardError that says which sample it was about, for which a reward that raised is asked again, sample by sample.

Several rewards with weights are summed: each is asked the same, and its parts bear its name (`code/tests`). Right is
what format, extractor and equality of the config say, unless rewards decide the match: then all that do must agree.
Malformed is what the format or any of the rewards refuses, and of a malformed text only parts below zero count: what
one reward pays for cannot make up for the form that another asks for.

Where the config has rewards by task, each prediction is judged by those of its row's task alone: of a batch, a reward
sees the part that is of its task. The parts of its reward then bear the name of the task (`math/exact_match`).

A reward is registered with its hooks, if it has any: `@register_reward("name", begin=my_begin)`. An attribute of that
name, set on the function by hand, is not read. `prepare()` is called before torch is imported, to start what the reward
needs; it returns a line to tell at start-up. `check(rows)` is called with all rows before anything is trained, to find
what is wrong with them; a parameter `places` gets where each of them stands in the source, for messages.
`begin(text, row)` is called with each prediction as soon as it is written, so that what is judged by other processes is
judged during generation. `explain(texts, rows)` returns a dict for each of some wrong predictions, all judged by
then: what a person wants to know of them, for failures.jsonl. A reward registered with `pays_format=True` needs a
config whose format has an <answer> block.

The modules, in reading order:

equality                                                   what runs in a process of its own: math-verify
crossword, formula, programs, rush_hour, tags   the shelf: mates do not know each other
function                                                   one reward, called, and checked in what it takes and returns
judge                                                      rewards, a format, extractors and an equality, called as one
routing                                                    the judge of a data set, whose rows may be of several tasks
"""
