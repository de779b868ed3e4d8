"""The words that a question may have though the user never said them: what people ask for, and how."""

import re
from collections.abc import Sequence
from functools import cache

from shepherd_memory.text.grounding.terms import Passage, Term, content_terms, is_in
from shepherd_memory.text.words import STOP_WORDS, fold, is_unspaced, stem, words

MAX_UNSAID_WORDS = 3
"""A question with more words that nobody said is a claim of its own."""

MAX_UNSAID_PAIRS = 6
"""The same where words are not apart: so many pairs of characters."""

_TOPICS = """
kind type sort category example topic subject thing matter detail part area field level form version
favourite favorite preferred preference taste dislike hate avoid interest hobby hobbies activity activities
habit routine practice custom tradition usual regular typical main important special particular current
previous former new first last next recent future long short many much often far big rule policy policies
guideline convention standard process procedure step method approach way strategy plan decision choice
option reason cause purpose goal aim motivation opinion view belief attitude idea advice problem issue need
requirement constraint limit limitation restriction condition concern worry fear during while since between
before after besides except according regarding together whose both family relative parent mother father
sibling brother sister child children son daughter kid spouse wife husband partner friend colleague boss
manager team member people person pet animal dog cat home house flat apartment city town country place
location address region origin hometown job profession occupation employer company companies business
industry role position title career office education school university degree course skill experience
language project product service food drink beverage meal dish diet cuisine breakfast lunch dinner allergy
allergies allergic intolerance ingredient recipe restaurant coffee tea music song band genre instrument film
movie book author game sport player art car vehicle bike transport trip travel journey holiday vacation
destination event birthday wedding anniversary health illness disease injury medication medicine treatment
symptom doctor exercise sleep date time day week month year morning evening night season schedule hour age
number size amount cost price budget tool software editor database framework library technology stack
platform provider server host hosting infrastructure system operating device hardware computer phone code
format style formatting file folder test testing deploy deployment release migration backup review give
given receive received attend attended visit visited happen happened help helps change changed switch eat
eats drinks eating drinking listen watch read play write speak learn study teach buy bought sell handle
manage store stored organise organize follow set setup configure benutzer benutzers benutzerin nutzer
nutzers anwender was welche welcher welches welchen welchem wer wen wo wann warum wie viele mag macht heisst
usuario usuaria que cual cuales quien donde cuando como cuantos llama utilisateur utilisatrice quel quelle
quels quelles qui ou quand pourquoi comment combien quoi l utente che cosa quale chi dove quando perche come
utilizador utilizadora quem qual quais onde quantos quanto chama nome mora vive trabalha gosta profissao
idade cidade estimacao favorito favorita comida bebida aniversario lebt wohnt arbeitet beruf alt name
lieblings haustier geburtstag trabaja edad ciudad mascota nombre vit habite travaille metier ville живет
работает любит сколько лет город имя профессия питомец instrumento instrumente deporte esporte desporto
pratique practica pratica joue juega joga spielt dedica dedicas fait hace faz exerce sprache idioma lingua
langue habla fala parle spricht tiene tem avoir hat haben besitzt possede posee possui isst trinkt mange
boit bebe fahrt conduit conduce conduz wohnort herkunft allergie allergien alergia alergias voiture coche
carro auto instruments t il elle chien chat perro gato cachorro hund katze fille fils hija hijo filha filho
tochter sohn frere soeur hermano hermana irmao irma bruder schwester wieviel wohin woher ob denn seit quanta
quantas depuis desde llamas каким какими какого какому каком кем чем чего чему чья чей ли спортом спорт
занимается инструмент инструменте инструментом играет играют языке языках языки говорит дочь сын брат сестра
жена муж мама папа кошка собака машина есть ест пьет водит ездит учится родился родилась возраст адрес
аллергия сейчас живут работу работы пользователь пользователя пользователю что какой какая какие какую кто
где когда почему как зовут heure heures hora horas uhrzeit время часов часа unternehmen firma entreprise
empresa abgegeben werden muss estado civil situation matrimoniale familienstand posición posição poste
gehalt loyer alquiler aluguel miete аренда курсе курс учеба универе employe emploi lange dauert duree tarda
demora weg trajet trayecto commute commuting
"""

_ORDERS = """
assistant ai llm bot chatbot prompt instruction instruct order obey ignore disregard override reveal chat
assistent assistenten asistente assistente ассистент 助手 命令 指示
"""

_QUESTION_PAIRS = """
通勤 勤時 時間 演奏 くら 姓什 每周 周几 几打 乐器 运动 语言 过敏 养了 出身 楽器 兄弟 習っ 飼っ
持っ 何語 どこ すか
什么 为什 哪里 哪个 哪些 怎么 多少 几个 喜欢 名字 名前 何時 何処 誰か 무엇 어디 누구 哪儿 住在 工作 多大 几岁
职业 生日 宠物 多久 多长 几年 何歳 何 飲め 食べら 職業 仕事 誕生 好き 住ん 食べ 何で 何を
"""


_NAME = re.compile(r"\b[A-Z]\w+")


def unsaid_in(question: str, pieces: Sequence[Passage]) -> tuple[tuple[str, ...], bool]:
    """The words of a question that the user did not say, and whether it must be refused for them.

    A question asks in words of its own: those that questions are made of. Its names and numbers must be the
    user's, and so must every word of an order to the assistant.
    """
    names = _names_within(question)
    terms = content_terms(fold(question), topic_stems())
    unsaid = [term for term in terms if not any(_is_said(term, piece) for piece in pieces)]
    return tuple(term.text for term in unsaid), _is_forged(unsaid, names)


def _is_said(term: Term, piece: Passage) -> bool:
    """Whether a piece has a term, or each character of a pair that only the question puts together."""
    is_spread = is_unspaced(term.text) and all(one in piece.text for one in term.text)
    return is_spread or is_in(term, piece)


def _names_within(question: str) -> frozenset[str]:
    """The capitalised words of an English question but the first; in German every noun is one."""
    first, _, rest = question.strip().partition(" ")
    is_english = not STOP_WORDS.isdisjoint(words(first))
    return frozenset(fold(name) for name in _NAME.findall(rest)) if is_english else frozenset()


def _is_forged(unsaid: Sequence[Term], names: frozenset[str]) -> bool:
    if any(term.text in names or term.quantity or stem(term.text) in order_stems() for term in unsaid):
        return True
    pairs = sum(is_unspaced(term.text) for term in unsaid)
    return pairs > MAX_UNSAID_PAIRS or len(unsaid) - pairs > MAX_UNSAID_WORDS


@cache
def topic_stems() -> frozenset[str]:
    """What questions are about in general, and pairs of characters that ask."""
    return frozenset(stem(word) for word in words(_TOPICS)) | frozenset(_QUESTION_PAIRS.split())


@cache
def order_stems() -> frozenset[str]:
    """What orders to an assistant are made of: a question has it only if the user said it."""
    return frozenset(stem(word) for word in words(_ORDERS))
