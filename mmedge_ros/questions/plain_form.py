"""Rewrites questions as the plain sentences that the grammar reads.

Words are exchanged only for others that mean the same. What is not known stays as it is, so that
the question is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mmedge_ros.questions.time_words import NUMBER_WORDS, number_of

_OURS = (
    r'(?:we|you|they|i|it|the (?:drone|uav|copter|aircraft|camera|cameras|radar|system|detector|'
    r'tracker|sensors?))'
)
_SAW = (
    r'(?:see|saw|seen|spot(?:ted)?|detect(?:ed)?|track(?:ed)?|noticed?|find|found|pick(?:ed)? up|'
    r'record(?:ed)?|observed?|count(?:ed)?|catch|caught|register(?:ed)?|captured?|'
    r'encounter(?:ed)?|(?:come|came) across|logg?(?:ed)?|film(?:ed)?|sight(?:ed)?)\b'
)
_HAD_SEEN = (
    r'(?:saw|seen|spotted|detected|tracked|noticed|found|picked up|recorded|observed|counted|'
    r'caught|captured|encountered|came across|filmed|had)\b'
)
_GOT = rf'(?:{_SAW}|(?:have|had|get|got)\b)'
_TRACK = r'(?:the )?(?:track|person|car|dog|cyclist|object|id|number|nr) #?\d{1,9}\b'
_THING = rf'(?:{_TRACK}|(?:the|that|this) [a-z][\w -]*?|any(?:one|body|thing))'
_ASKED = r'(?=(?:how|what|which|who|where|when|whether|if|in what|in which|at what)\b)'
_WAS = r'(?:was|were|is|are|has|have|had|did|does|do)'
# What may follow a particle that says nothing: "walked by in the last minute".
_REST = (
    r'(?= *$|,| (?:in|at|during|between|before|after|within|on|since|from|over|for|until|ever|so|'
    r'behind|ahead|near|close|closer|right now|now|throughout|while|when)\b)'
)
_COUNT = rf'(?:\d+(?:\.\d+)?|{NUMBER_WORDS})'
_TIME_UNIT = r'(?:second|minute|hour)'
_UNITS = r'(?:m|met(?:re|er)s?|s|sec\w*|min\w*|hours?)\b'
_METRES = rf'({_COUNT}) ?(?:m|met(?:re|er)s?)\b'

_BY = r'(?:by|past|through|along|around|about)'

_Rule = tuple[str, str | Callable[[re.Match[str]], str]]

_SPELLED: tuple[_Rule, ...] = (
    (r'[’`´]', "'"),
    (r"\b(who|what|where|how|when|which|there)'s\b", r'\1 is'),
    (r"'ve\b", ' have'),
    (r"'re\b", ' are'),
    (r"\bi'd like\b", 'i would like'),
    (r"n't\b", ' not'),
    (r"\b(go|head|mov|walk|runn|driv|com|stand|approach)in\b'?", r'\1ing'),
)
_NAMED_FIRST = (
    rf'^(?:about |regarding )?(?P<named>(?:the|that|this) [a-z][\w -]*?|{_TRACK}) ?[,:;-] '
    r'(?P<rest>.*)$'
)
_BEGUN = (
    r'^(?:so|ok|okay|hey|hi|hello|well|and|um|uh|alright|just|please|also|then|but|drone|'
    r'quick question|question)\b[,:.! -]*',
    r'^(?:(?:can|could|would|will|do|did) (?:you|i|we) (?:please |just |kindly )?)?(?:please )?'
    r'(?:tell (?:me|us)|say|show (?:me|us)|let (?:me|us) know|give (?:me|us)|know|check|find out|'
    rf'work out|figure out|look up|confirm|verify|see|remember)(?:,? please)?,? {_ASKED}',
    rf'^(?:i|we) (?:would like|want|need|wanted) to (?:know|find out|see|hear),? {_ASKED}',
    rf'^(?:(?:i|we) (?:am wondering|are wondering|wonder)|(?:do you have )?any (?:idea|clue)) '
    rf'{_ASKED}',
)
_ENDED = (
    r'[ ,]+(?:please|thanks|thank you|by any chance|for me|or not|do you know|if any|exactly|'
    r'roughly|again)[?.! ]*$',
)
_LAST_SEEN = (
    rf'\b(?:when|the last time|where) (?:{_OURS} (?:last )(?:saw|had|tracked|detected) '
    rf'(?:it|him|her|them|{_TRACK})|(?:it|he|she|they|{_TRACK}) (?:was|were) last '
    r'(?:seen|tracked|detected|visible))\b'
)
_ORDERED: tuple[_Rule, ...] = (
    (r'^(?:whether|if)(?: or not)? there (was|were|is|are)\b', r'\1 there'),
    (rf'^(?:whether|if)(?: or not)? (.+?) ({_WAS}) ', r'\2 \1 '),
    (r'^(?:whether|if)(?: or not)? ', 'did '),
    (
        r'^(how (?:fast|far|far away|close)|where|(?:in )?(?:which|what) (?:way|direction)|when) '
        rf'({_THING}) ({_WAS})\b',
        r'\1 \3 \2',
    ),
    (r'^(?:is|was) ((?:track|object|id) #?\d+) an? [a-z]+,? or an? [a-z]+ *$', r'what is \1'),
    (
        rf'^({_TRACK}) (?:still )?(?=(?:moving|standing|walking|running|driving|approaching)\b)',
        r'is \1 ',
    ),
    (r'^(?:more|fewer)\b', r'were there \g<0>'),
    (r'^(?!how)(.+?),? how many *$', r'how many \1'),
    (
        r'^(?:give|show|tell|name|list)(?: (?:me|us))? the (?=(?:fast|quick|slow|clos|near|farth|'
        r'furth)\w*est\b)',
        'what was the ',
    ),
    # "the dog, track 40"
    (r'\bthe (person|dog|car|cyclist) track (\d{1,9})\b(?! or\b)', r'\1 \2'),
    (r'\ba man or (?:a )?woman\b', 'a person'),
    (r'\bmen and women\b', 'people'),
    (r'^(?:any|anyone|anybody|anything|someone|somebody|something)\b', r'was there \g<0>'),
    (r'^(?:total |overall )?(?:number|count) of\b', 'how many'),
    (
        r"^((?:what (?:is|was) )?)(.+?)'s (?=(?:top |maximum |average )?"
        r'(?:speed|heading|direction|position|location)\b)([a-z ]+)',
        r'\1the \3 of \2',
    ),
    (
        r'^(?:(?:give|tell|show) (?:me|us) )?(?:the )?((?:top|max\w*|highest|average|mean) '
        r'(?:speed|velocity) of|distance between)',
        r'what was the \1',
    ),
    (
        r'^(?:(?:give|tell|show) (?:me|us) )?(?:the )?((?:current )?(?:speed|velocity|heading|'
        r'direction|position|location) of|distance (?:of|to|from))',
        r'what is the \1',
    ),
    (
        r'^how fast did (.+?) (?:get|(?:go|move|run|drive) at (?:its|his|her|their) '
        r'(?:fastest|most))\b',
        r'what was the top speed of \1',
    ),
)
_SIGHTS: tuple[_Rule, ...] = (
    (
        rf'^when did {_OURS} (first|last) {_GOT} (.+)$',
        r'when was \2 \1 seen',
    ),
    (
        rf'^when did {_OURS} {_GOT} (.+?) (?:for the )?(first|last)(?: time)?$',
        r'when was \1 \2 seen',
    ),
    (
        rf'^when was the (first|last) time (?:that )?{_OURS} {_GOT} (.+)$',
        r'when was \2 \1 seen',
    ),
    (
        r'^when was the (first|last) time (?:that )?(.+?) (?:was|were) '
        r'(?:seen|visible|in view|tracked|detected|spotted)$',
        r'when was \2 \1 seen',
    ),
    (rf'^when was (.+?) (?:spotted|noticed|{_SAW}) (first|last)\b', r'when was \1 \2 seen'),
    (r'^when did (.+?) (?:first )?(?:show up|turn up|come into view)', r'when did \1 appear'),
    (rf'^where did {_OURS} last {_GOT} (.+)$', r'where is \1'),
    (r'^where was (.+?) last (?:seen|spotted|tracked|detected)\b', r'where is \1'),
    (
        rf'^(?:for )?how long (?:did|have|had|could) {_OURS} {_GOT} (.+?)(?: for)?$',
        r'how long was \1 seen',
    ),
    (r'^for how long\b', 'how long'),
    (rf'^(?:did|have|had|has|could) {_OURS} (?:ever )?{_SAW} ({_TRACK})', r'was \1 seen'),
    (rf'^(?:do|does|can) {_OURS} (?:still )?{_SAW} ({_TRACK})', r'is \1 seen'),
    (rf'^(?:have|has) {_OURS} got\b', 'are there'),
    (rf'^(?:did|had|have|has|could) {_OURS} (?:ever )?{_GOT}', 'were there'),
    (rf'^(?:do|does|can) {_OURS} (?:still |currently )?{_GOT}', 'are there'),
    (rf'(?<=\w) (?:have|has) {_OURS} got\b', ' are there'),
    (rf'(?<=\w) (?:did|had|have|has|could) {_OURS} (?:ever )?{_GOT}', ' were there'),
    (rf'(?<=\w) (?:do|does|can) {_OURS} (?:still |currently )?{_GOT}', ' are there'),
    (
        rf'(?<=\w) (?:(?:that|who|whom|which) )?{_OURS} (?:have |had |could )?{_HAD_SEEN}',
        ' seen',
    ),
    (r'\b(?:show(?:n|ed|s|ing)?|turn(?:ed|s|ing)?|pop(?:ped|s)?) up\b', 'appeared'),
    (
        r'\b(?:c[ao]m(?:e|es|ing)|pass(?:ed|es|ing)?|go(?:es|ing|ne)?|went|g[oe]t(?:s|ting)?)'
        rf' (?:by|past|through|along)(?: (?:us|here|the drone))?{_REST}',
        'appeared',
    ),
    (rf'\bpass(?:ed|es|ing)?{_REST}', 'appeared'),
    (
        r'\b(?:c[ao]m(?:e|es|ing)|enter(?:ed|s|ing)?|g[oe]t(?:s|ting)?)(?: into)? (?:the |our )?'
        r'(?:view|sight|picture|frame|field of view)\b',
        'appeared',
    ),
    (
        r'\b(?:in|on) (?:the |our )?(?:view|sight|picture|frame|field of view|camera)\b',
        'seen',
    ),
    (r'\b(?:out|over|down|around) (?:there|here)\b', 'there'),
    # A relative pronoun says nothing of its own.
    (
        r'^(.*\b(?:how|what|which|who|was|were|is|are|did|do|does|any\w*|list|show|name|count|has|have)\b'
        r'.* )(?:who|that|which) (?!way|direction)',
        r'\1',
    ),
    (r'\bvery (?=first|last|closest|nearest|fastest)', ''),
)
_MOTIONS: tuple[_Rule, ...] = (
    (r'\b(?:on the move|in motion)\b', 'moving'),
    (rf'\bmov(?:ing|ed|e) (?:around|about){_REST}', 'moving'),
    (rf'\bwalk(?:ing|ed|s)? {_BY}{_REST}', 'walking'),
    (rf'\b(?:run(?:ning|s)?|ran) {_BY}{_REST}', 'running'),
    (rf'\b(?:driv(?:e|es|ing)|drove) {_BY}{_REST}', 'driving'),
    (r'\b(?:sprint|jogg?)(?:ing|ed|s)?\b', 'running'),
    (r'\b(?:wander|stroll)(?:ing|ed|s)\b', 'walking'),
    (
        r'\b(?:stay(?:ing|ed|s)? (?:still|put|in one spot|in place)|standing (?:there|around|'
        r'about|in one spot|in place)|motionless|immobile|at rest)\b',
        'standing',
    ),
    (
        r'\b(?:mov|walk|go|runn?|driv|rid|head|com)(?:e|es|ed|ing)? (?:directly |straight )?'
        r'(?:towards?|up to) (?:us|me|you|here|the drone)\b|\b(?:coming|heading|moving|walking|'
        r'going) our way\b',
        'approaching',
    ),
    (
        r'\b(?:mov|walk|go|runn?|driv|rid|head)(?:e|es|ed|ing)? away(?: from (?:us|me|here|'
        r'the drone))?(?! from)\b',
        'leaving',
    ),
    (r'\brunners\b|\bjoggers\b', 'people running'),
    (r'\brunner\b|\bjogger\b', 'person running'),
    (
        r'\b(?:people|person|anyone|anybody|someone|somebody) (?:cycling|biking|(?:on|riding) '
        r'(?:a |their )?(?:bikes?|bicycles?))\b',
        'cyclist',
    ),
    (r'\b(?:bike|bicycle) riders?\b', 'cyclist'),
)
_PLACES: tuple[_Rule, ...] = (
    (rf'\b(?:within |less than )?{_METRES} or (?:less|closer|nearer)\b', r'within \1 m'),
    (rf'\b{_METRES} or (?:more|further|farther)\b', r'at least \1 m'),
    (rf'\b(?:up|out) to {_METRES}', r'within \1 m'),
    (
        rf'\b(?:in|inside|within) (?:a |an )?{_METRES}[ -]radius(?: (of|around|from))?',
        r'within \1 m \2',
    ),
    (r'\b(farther|further|closer|nearer) (?:away|out|off|in) than\b', r'\1 than'),
    (r'\b(?:right|just|immediately) (?=next to|beside|by |near)', ''),
    (r'\b(?:anywhere|somewhere) (?=near|within|close|around|behind|ahead|in front)', ''),
    (r'\bin the (?:vicinity|neighbou?rhood) of\b', 'near'),
    (r'\bup ahead\b', 'ahead'),
    (r'\bin front\b(?! of)', 'in front of us'),
    (r'\bbehind *$', 'behind us'),
    (r'(?<=drone)(.*) (left|right|ahead|in front) of it\b', r'\1 \2 of the drone'),
)


def _with_half(found: re.Match[str]) -> str:
    return f'{number_of(found.group(1)) + 0.5:g} {found.group(2)}'


def _of_day(found: re.Match[str]) -> str:
    hour = int(found.group(1))
    if not 1 <= hour <= 12:
        return found.group()
    hour = hour % 12 + (12 if found.group(3)[0] == 'p' else 0)
    return f'{hour:02d}:{found.group(2) or "00"}:00'


def _minutes(found: re.Match[str]) -> str:
    """Make "minute 2" two minutes, but not in "the last minute 2 people"."""
    before, unit, count = found.groups()
    return found.group() if before in _OF_SPANS else f'{before} {count} {unit}s'


_OF_SPANS = {'last', 'first', 'past', 'final', 'a', 'one', 'per', 'this', 'previous'}
_TIMES: tuple[_Rule, ...] = (
    (rf'\b({_COUNT}) and a half ({_TIME_UNIT}s?|{_UNITS})', _with_half),
    (rf'\b(?:an?|one) ({_TIME_UNIT}) and a half\b', r'1.5 \1s'),
    (rf'\b(?:a )?couple(?: of)? (?={_TIME_UNIT}s)', '2 '),
    (r'\b(\d{1,2})(?::(\d\d))? ?(am|pm|a\.m\.|p\.m\.)(?!\w)', _of_day),
    (rf'\b(?:the )?({_COUNT})[ -]({_TIME_UNIT})s?[ -](?:mark|point)\b', r'\1 \2s'),
    (r'\b(?:the )?(\d{1,2}:\d\d) mark\b', r'\1'),
    (rf'\b([a-z]+) ({_TIME_UNIT}) ({_COUNT})\b(?! ?{_UNITS})', _minutes),
    # "in the first three minutes or in the last three"
    (
        rf'\b(first|last) ({_COUNT}) ({_TIME_UNIT}s?)\b(.*) (first|last) ({_COUNT})\b'
        rf'(?! ?{_UNITS})',
        r'\1 \2 \3\4 \5 \6 \3',
    ),
)
_NUMBERS: tuple[_Rule, ...] = (
    (rf'\b({_COUNT}) or more (?!{_UNITS})', r'at least \1 '),
    (rf'\b({_COUNT}) or (?:fewer|less) (?!{_UNITS})', r'at most \1 '),
)


def plain_form(words: str) -> str:
    """Return a question in plain words, without its punctuation; it may be empty.

    :param words: in lower case, one space between them
    """
    words = _spelled(_exchanged(words, _SPELLED))
    words = _without(words, _ENDED)
    words = _without(words, _BEGUN)
    words = _named_last(words)
    words = re.sub(r'[?!;"“”]|[.:](?!\d)|,(?! ?-?\d)', ' ', words)
    words = ' '.join(re.sub(r' (?:around|about) *$', '', words).split())
    words = _at_its_last(words)
    for rules in (_TIMES, _ORDERED, _SIGHTS, _MOTIONS, _PLACES, _NUMBERS):
        words = _exchanged(words, rules)
    return ' '.join(words.split())


def _spelled(words: str) -> str:
    """Mend words of which one letter is missing, or two have changed places."""
    return re.sub(r'[a-z]+', lambda found: _MISSPELLED.get(found.group(), found.group()), words)


def _misspelled() -> dict[str, str]:
    mended = {}
    for word in _OFTEN_MISSPELLED:
        for place in range(1, len(word)):
            mended[word[:place] + word[place + 1 :]] = word
            swapped = word[:place] + word[place + 1 : place + 2] + word[place]
            mended[swapped + word[place + 2 :]] = word
    return {wrong: word for wrong, word in mended.items() if wrong not in _WORDS_ALIKE}


_OFTEN_MISSPELLED = (
    *('there', 'which', 'people', 'person', 'within', 'metres', 'between', 'before', 'during'),
    *('closest', 'nearest', 'fastest', 'walking', 'running', 'standing', 'seconds', 'minutes'),
    *('cyclists', 'children', 'moving'),
)
# These are words of their own.
_WORDS_ALIKE = {
    *('three', 'thee', 'closet', 'waking', 'sanding', 'meters', 'second', 'minute', 'cyclist'),
    *('ruining', 'metre', *_OFTEN_MISSPELLED),
}
_MISSPELLED = _misspelled()


def _exchanged(words: str, rules: tuple[_Rule, ...]) -> str:
    for pattern, same in rules:
        words = re.sub(pattern, same, words)
    return words


def _without(words: str, patterns: tuple[str, ...]) -> str:
    """Remove words without meaning until none is left."""
    before = ''
    while before != words:
        before = words
        for pattern in patterns:
            words = re.sub(pattern, '', words)
    return words


def _named_last(words: str) -> str:
    """Put what is named first in the place of its pronoun: "track 7, was it moving"."""
    found = re.match(_NAMED_FIRST, words)
    if found is None:
        return words
    parts = re.split(r'\b(?:it|he|she|they|him|them)\b', found['rest'])
    return found['named'].join(parts) if len(parts) == 2 else words


def _at_its_last(words: str) -> str:
    """Ask for the newest that is known: "which way was track 7 going when we last saw it"."""
    shorter = re.sub(_LAST_SEEN, '', words)
    if shorter == words or len(shorter.split()) < 2:
        return words
    now = {'was': 'is', 'were': 'are', 'did': 'does'}
    return re.sub(r'\b(?:was|were|did)\b', lambda found: now[found.group()], shorter, count=1)
