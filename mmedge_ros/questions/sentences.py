"""Sentence patterns of the kinds of question, for words in the plain form."""

from __future__ import annotations

from mmedge_ros.questions.place_words import ANCHOR, TRACK
from mmedge_ros.questions.question import Asked, Measure, Sense
from mmedge_ros.questions.time_words import NUMBER

EXAMPLES = (
    '"how many people within 20 m in the last minute?", "what is near track 7?" or "is track 3 '
    'faster than track 5?"'
)
COMPARATIVES = {
    **dict.fromkeys(('faster', 'quicker'), (Measure.SPEED, True)),
    'slower': (Measure.SPEED, False),
    **dict.fromkeys(('farther', 'further'), (Measure.DISTANCE, True)),
    **dict.fromkeys(('closer', 'nearer'), (Measure.DISTANCE, False)),
    **dict.fromkeys(('earlier', 'sooner'), (Measure.FIRST_SEEN, False)),
    'later': (Measure.FIRST_SEEN, True),
}
SUPERLATIVES = {
    **dict.fromkeys(('fastest', 'quickest'), (Measure.SPEED, True)),
    'slowest': (Measure.SPEED, False),
    **dict.fromkeys(('farthest', 'furthest'), (Measure.DISTANCE, True)),
    **dict.fromkeys(('closest', 'nearest'), (Measure.DISTANCE, False)),
    'first': (Measure.FIRST_SEEN, False),
}
BE, WAS = r'(?:is|are|was|were)', r'(?:was|were|did|came|got|went|had|has been|have been)'
_GO = r'(?:going|moving|heading|headed|walking|running|driving|travelling|traveling|riding)'
_MOVE = r'(?:go|move|head|walk|run|drive|travel|ride)'
CAME = r'(?:come|came|comes|get|got|gets|be|been|go|goes|went|move|moves|moved|getting|coming)'
_COMPARED = rf'(?P<than>{"|".join((*COMPARATIVES, *SUPERLATIVES))})'
_SUPERLATIVE = rf'(?P<most>{"|".join(SUPERLATIVES)})'
_FROM = rf'(?P<anchor>{ANCHOR}|(?:the|an?) [a-z][a-z ]*?|any [a-z ]+?|any(?:one|body|thing))'
_MEASURED = rf'(?: (?:away |off |out )?(?:to|from) {_FROM})?'
_NAMED = rf'{TRACK}|(?:the|that|this) [a-z][\w -]*?'
_SUBJECT = rf'(?P<subject>{_NAMED})'
# What may be several: the one of them that is most so.
_ANY_SUBJECT = (
    rf'(?P<subject>{_NAMED}|(?:any|an?|some) [a-z][\w -]*?|(?:any|some)(?:one|body|thing))'
)
_DID = r'(?P<verb>is|are|was|were|did|does|do|has|had)'
_SEEN = r'(?:seen|visible|tracked|detected|spotted|noticed|appear(?:ed)?|there|present)'
_FAR = r'(?: (?:away|off|out))?'

PAIRS = (
    rf'{_DID} (?P<a>{_NAMED}) (?:(?:{CAME}|{_GO}|{_MOVE}|{_SEEN}) )?(?:any )?{_COMPARED}{_FAR}'
    rf'{_MEASURED} than (?P<b>{_NAMED})(?: (?:is|was|did))?'
    rf'{_MEASURED.replace("anchor", "other_anchor")}',
    rf'(?:who|what|which)(?: one| track| of (?:them|the two)| (?P<noun>[a-z]+))? (?P<verb>\w+)'
    rf'(?: (?:{_GO}|{CAME}|{_SEEN}))?(?: the)? {_COMPARED}{_FAR}(?: {_SEEN})?{_MEASURED},? ?'
    r'(?:of )?'
    rf'(?P<a>{_NAMED}) or (?P<b>{_NAMED})',
    rf'which(?: one)? of (?P<a>{TRACK}) (?:and|or) (?P<b>{TRACK}) (?P<verb>\w+)(?: {_GO})?'
    rf'(?: the)? {_COMPARED}{_FAR}{_MEASURED}',
    rf'{_DID} (?P<a>{TRACK}) or (?P<b>{TRACK}) (?:(?:{CAME}|{_GO}|{_MOVE}|{_SEEN}) )?(?P<which>)'
    rf'{_COMPARED}{_FAR}{_MEASURED}',
)
STATUS = (
    (
        Asked.HEADING,
        rf'(?:in )?(?:which|what) (?:way|direction) {_DID} {_SUBJECT} (?:{_GO}|{_MOVE})(?: in)?',
    ),
    (Asked.HEADING, rf'where {_DID} {_SUBJECT} (?:{_GO}|{_MOVE})(?: to)?'),
    (
        Asked.HEADING,
        r'what (?P<verb>is|was) the (?:heading|direction|course|bearing)'
        rf'(?: of (?:travel|movement|motion))? of {_SUBJECT}',
    ),
    (
        Asked.SPEED,
        rf'(?:how (?:fast|quick|quickly)|at what speed) {_DID} {_SUBJECT}(?: (?:{_GO}|{_MOVE}))?',
    ),
    (
        Asked.SPEED,
        r'what (?P<verb>is|was) the (?:(?P<top>top|max|maximum|highest|peak)|average|mean|'
        rf'current)? ?(?:speed|velocity) of {_SUBJECT}',
    ),
    (
        Asked.DISTANCE,
        rf'how (?:close|near)(?: away)? (?P<verb>did|has|have|was|were) {_ANY_SUBJECT} '
        rf'(?P<came>ever )?{CAME}{_MEASURED}',
    ),
    (
        Asked.DISTANCE,
        rf'how (?P<near>far|close|near){_FAR}(?: (?:to|from) (?P<before>{ANCHOR}))? {_DID} '
        rf'{_SUBJECT}(?: {CAME})?{_FAR}{_MEASURED}',
    ),
    (
        Asked.DISTANCE,
        rf'how far (?:apart )?{_DID} (?P<subject>{TRACK}) and (?P<anchor>{TRACK})(?: apart)?',
    ),
    (
        Asked.DISTANCE,
        r'what (?P<verb>is|was) the (?P<least>(?:shortest|smallest|closest|least|minimum) )?'
        rf'distance (?:between|from|of|to) {_SUBJECT}(?: (?:and|to|from) (?P<anchor>{ANCHOR}))?',
    ),
    (Asked.PLACE, rf'where(?: exactly)? {_DID} {_SUBJECT}(?: (?:located|be|standing))?'),
    (Asked.PLACE, rf'what (?P<verb>is|was) the (?:position|place|location) of {_SUBJECT}'),
    (
        Asked.FIRST_SEEN,
        rf'when {_DID} {_ANY_SUBJECT} (?:first {_SEEN}|{_SEEN} first|appear|come|arrive)',
    ),
    (Asked.LAST_SEEN, rf'when {_DID} {_ANY_SUBJECT} (?:last {_SEEN}|{_SEEN} last)'),
    (
        Asked.DURATION,
        rf'how long {_DID} {_SUBJECT}(?: (?:stay|remain|keep))? '
        rf'(?:{_SEEN}|(?P<motion>[a-z][a-z ]*))',
    ),
    (Asked.MOTION, rf'{_DID} {_SUBJECT} (?P<motion>[a-z][a-z ]*)'),
)
LABEL = (
    r'(?:what|who)(?: (?:kind|type|sort) of (?:object|thing|target|track))? (?P<verb>is|was) '
    rf'(?P<subject>{TRACK})'
)
_SEES = r'(?:(?:do|did|can|could|have|had) (?:you|we|the drone|it) )?'
_THERE = rf'(?:{BE}(?: there)?|did|do|have|has|{_SEES}(?:see|seen|find)|there {BE})'
# Two counts; what stands before is a time or a place of both.
MORE_THAN = (
    rf'(?P<before>.*?)\b(?P<verb>{_THERE}) (?:any )?(?P<sense>more|fewer|less|as many) '
    r'(?P<what>(?!than\b).+?) (?P<joint>than|as|or(?: more| fewer)?) (?P<other>.+)'
)
COMPARE = (
    r'(?P<before>.*?)\bcompare (?:how many|the number of) (?P<what>.+?) (?:and|with|to) '
    r'(?:how many|the number of)? ?(?P<other>.+)'
)
NUMBERED = (
    rf'{_THERE} (?:ever )?(?P<sense>more than|fewer than|less than|at least|at most|exactly) '
    rf'(?P<number>{NUMBER}) (?P<what>.+)'
)
SENSES = {
    **dict.fromkeys(('more', 'more than'), Sense.MORE),
    **dict.fromkeys(('fewer', 'less', 'fewer than', 'less than'), Sense.FEWER),
    **dict.fromkeys(('as many', 'exactly'), Sense.EQUAL),
    'at least': Sense.AT_LEAST,
    'at most': Sense.AT_MOST,
}
EXTREMES = (
    rf'(?:who|what|which|where)(?: (?P<what>[a-z][a-z -]*?))? (?P<verb>is|are|was|were|came|comes|'
    rf'got|gets|moved|moves|went|goes|ran|drove|walked|stayed|passed|appeared)'
    rf'(?: (?:{_GO}|{_SEEN}))?(?: the)? {_SUPERLATIVE}(?: (?P<which>[a-z][a-z -]*?))??{_FAR}'
    rf'{_MEASURED}'
)
COUNTING = (
    r'how many(?: different| distinct| separate| unique)? (?P<what>.+)',
    r'count (?:all |every |each )?(?P<what>.+)',
    r'(?:what (?P<number>is|was) |give me |tell me )?the (?:total )?(?:number|count) of '
    r'(?P<what>.+)',
)
LISTING = (
    r'(?P<what>who|what|whom)(?: else)?(?: (?P<rest>.+))?',
    r'(?:which|what)(?: kinds? of)? (?P<rest>.+)',
    r'(?:list|show|name)(?: me)?(?: all| every| each)? (?P<rest>.+)',
)
EXISTING = (
    rf'{_DID}(?: there)?(?: ever)? (?P<what>.+)',
    r'(?:can|could|have|do) (?P<what>.+)',
)
