"""Function words of some languages, and what people call the kinds of things: data, no rules.

Everything here is folded (lower case). Languages: English, German, French, Spanish, Russian; Chinese needs other means
(`spans.py`). No name of any domain's entity belongs here.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that stand inside names in lower case: "Bridge of the North", "Haus am See".
CONNECTORS = _words(
    "of the a an and in on at to for from with by or nor is "
    "der die das des dem den von vom zu zum zur am im und für mit aus auf an in über unter ohne gegen "
    "de du des la le les l' d' et en au aux à un une sur pour sans chez par dans "
    "del de la el los las y al en un una con por para sin "
    "и в во на с со из от для за по к о об у над под без при "
    "da do dos das van und"
)
AND_WORDS = _words("and or und et y и oder ou o или nor")

# The words by which a language shows itself.
LANGUAGE_WORDS: dict[str, frozenset[str]] = {
    "en": _words(
        "the and is of to in it that was for not he she they you my this with but there be are have i when from"
    ),
    "de": _words("der die das und ist nicht ein eine ich mit den dem zu auf es von sich auch nach bei im wenn hat war"),
    "fr": _words("le la les et est une un des du je ne pas que dans pour il elle mon ma qui au sur avec j'ai quand ce"),
    "es": _words("el la los las y es una un que de no en por con se mi al del he lo pero para su cuando"),
    "ru": _words("и в не на я что он с как его но это из у по за мой все она бы же так меня"),
}

ARTICLES = _words("the a an der die das des dem den ein eine einen einem einer le la les l' un une el los las una unos")
INDEFINITE = _words("a an ein eine einen einem einer un une una some another")

# What starts a sentence in upper case and is no name: function words, pronouns, frequent adverbs and verbs.
STOP_WORDS = (
    CONNECTORS
    | ARTICLES
    | frozenset().union(*LANGUAGE_WORDS.values())
    | _words(
        "i we you he she it they me him her us them who whom whose what which when where why how that this "
        "these those here there then than so as if but not no yes any all every each some both either neither "
        "many most more much few several other another such only own same too very just also again still "
        "already now today yesterday tomorrow always never often sometimes after before while during since "
        "until because though although however moreover maybe perhaps please thanks thank hello hi hey dear "
        "regards everything nothing something anything everyone nobody somebody someone one two three four "
        "five six seven eight nine ten first second third last next can could will would shall should may "
        "might must do does did done doing has had having been being was were am are isn't doesn't don't "
        "can't won't cannot got get gets getting go goes went gone come came take took taken see saw seen "
        "look looked looking try tried think thought know seems seem seemed according about above across "
        "against along among around behind below beneath beside between beyond down into near off onto out "
        "outside over past through throughout under up upon within without instead otherwise meanwhile "
        "finally later currently actually basically usually apparently wanted problem bug issue steps step "
        "expected actual result note edit update patch version level fix fixed reproduce description summary "
        "title report normal new old big small great good bad wrong right missing broken bugged place killed "
        "kill talk talked speak accept accepted complete completed finish finished waited stood pulled works "
        "working tested test needs need once twice quite rather half everybody people guys server i'm i've "
        "named called i'd it's he's she's that's there's they're we're you're let's"
    )
    | _words(
        "ich du er sie wir ihr mich dich ihn uns euch mir dir ihm ihnen mein meine meinen meinem meiner dein "
        "sein seine ihre unser wer was wann wo warum wie welche welcher welches dieser diese dieses jener "
        "jede jeder jedes alle alles viele manche einige kein keine keinen nichts niemand jemand etwas hier "
        "dort dann denn aber doch oder wenn als ob weil dass obwohl während seit bis nach vor bei durch beim "
        "ans ins laut trotz wegen zwischen schon noch nur auch sehr mehr wieder immer nie heute gestern "
        "morgen jetzt danach davor eigentlich leider bitte danke hallo moin soweit sonst außerdem inzwischen "
        "kann können konnte muss müssen soll sollte will wollte wird werden wurde war waren bin sind hat "
        "hatte haben habe gibt geht ging kommt kam macht nachdem sobald damit dabei dadurch daher deshalb "
        "zwei drei vier fünf zehn beide anderen ohne beim"
    )
    | _words(
        "je tu il elle nous vous ils elles moi toi lui leur mon ma mes ton ta tes son sa ses notre votre ce "
        "cet cette ces qui que quoi quand où pourquoi comment quel quelle tout tous toute toutes rien "
        "personne quelque chaque plusieurs autre même ici là alors donc mais ou car si ne pas plus moins très "
        "trop aussi encore déjà toujours jamais hier aujourd'hui maintenant après avant depuis pendant entre "
        "vers selon malgré voilà bonjour merci salut svp est sont était étaient ai as a avons avez ont avait "
        "peut faut fait faire suis être avoir impossible normalement pourtant lorsque puis ensuite enfin j'ai "
        "c'est n'est qu'il d'un d'une l'on on sans chez deux trois"
    )
    | _words(
        "yo tú él ella nosotros ellos ellas me te se nos mi mis tu tus su sus este esta estos estas ese esa "
        "eso aquel qué quién cuando cuándo dónde donde por porque cómo como cual todo todos toda todas nada "
        "nadie algo alguien cada varios otro otra mismo aquí allí entonces pero o si no sí más menos muy "
        "también todavía ya siempre nunca hoy ayer ahora después antes desde hasta durante entre según hola "
        "gracias es son era fue está están estaba he ha han hay había puede hace hizo ser tener sin además "
        "luego dos tres a ante bajo"
    )
    | _words(
        "я ты он она оно мы вы они меня тебя его её нас вас их мне тебе ему ей нам вам им мой моя моё мои "
        "твой свой своя своё наш ваш этот эта это эти тот та те кто что где когда куда почему как какой какая "
        "который все всё весь каждый любой ничего никто что-то кто-то тут там здесь потом тогда но а или если "
        "не ни да нет ещё уже только очень более менее тоже также опять снова всегда никогда сегодня вчера "
        "сейчас теперь после до перед между через около во со ко из-за привет здравствуйте спасибо пожалуйста "
        "был была было были есть будет может можно нельзя надо нужно играю взял взяла убил убила при два три "
        "четыре пять один одна одном вообще по-моему хотя чтобы потому поэтому стою рядом"
    )
)

LOCATIVE = _words(
    "in at near to towards toward around into inside outside through across on beyond via outside "
    "im in nach bei aus am auf um ins nahe "
    "dans à au aux en vers près "
    "en por hacia desde a "
    "в во на из под около возле близ"
)
POSSESSIVE = _words(
    "my your our his her their mein meine meinen meinem meiner meines dein deine sein seine seiner unser "
    "unsere unserer ihr ihre mon ma mes ton notre nos votre mi mis nuestro nuestra tu su мой моя моего моему "
    "моим мои наш наша"
)
PERSONAL = POSSESSIVE | _words("as als comme como за играю")

# Common nouns (and short forms) that a report writes in upper case without naming anything: generic words of reports.
COMMON_WORDS = _words(
    "npc npcs pc gm ui id ids ok faq db ai api cpu url quest quests item items object objects creature creatures "
    "player players group party server client patch update version level map road bridge tower lake town city zone "
    "area cave house door chest box boss bosses mob mobs monster monsters damage health reward rewards bug log logs "
    "addon screenshot video guide website link wiki account spieler gruppe gegner aufgabe belohnung gegenstand "
    "waffe rüstung stufe stadt burg dorf straße brücke turm höhle haus tür truhe kiste freund freundin fehler "
    "problem bericht meldung mauszeiger fenster tagebuch stunden stunde minuten minute mal norden süden osten "
    "westen schaden leben ziel objekt welt karte gebiet weg platz ort tag nacht morgen abend zeit ende anfang "
    "charakter charaktere quelle quellen inhalt mann frau leute händler quête quêtes objet objets joueur groupe "
    "niveau ville journal carte monde coffre porte misión misiones objeto jugador grupo nivel ciudad mapa mundo "
    "cofre puerta задание задания квест предмет игрок группа уровень город карта мир сундук дверь нпс моб титул "
    "журнал сервер uhr"
)

# Days and months: they date what a report tells, and name nothing.
CALENDAR_WORDS = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
    "märz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars "
    "avril juin juillet août septembre octobre novembre décembre lunes martes miércoles jueves viernes sábado domingo "
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre понедельник вторник "
    "среда среду четверг пятница пятницу суббота субботу воскресенье "
    "feb apr jul aug sep sept oct nov dec okt dez mon tue wed thu fri"
)

# What is counted rather than named where a number follows: "level60", "phase-2".
NUMBERED_WORDS = _words(
    "level lvl lv tier phase step patch version ver v part day week page line chapter no nr num x rank stage round "
    "top rc beta alpha build release covid stufe teil tag woche seite zeile niveau nivel utf sha md ipv http win"
)

# What ordinary words with a hyphen are made of: "well-known", "e-mail", "self-made", "read-only", "sign-in".
COMPOUND_WORDS = _words(
    "well self non pre post anti semi multi co ex re sub super ultra mid half full high low long short hard soft "
    "real open built check sign log read write like based known made free proof wide only time term line end mail "
    "level scale size style type way side fold friendly ready specific related aware old year day hour minute week "
    "month one two three first second last brand ever never so called up off out in on by to"
)

# What people call the kinds of things. A catalog's entity type finds its kind through these words.
KIND_LABELS: dict[str, frozenset[str]] = {
    "agent": _words(
        "creature creatures npc npcs mob mobs monster boss enemy person character user vendor trainer being agent "
        "kreatur gegner wesen person figur nsc händler créature monstre ennemi personnage pnj vendeur utilisateur "
        "criatura monstruo enemigo personaje jefe usuario существо существа нпс моб монстр босс персонаж "
        "生物 怪物 人物 首领"
    ),
    "task": _words(
        "quest quests mission task assignment job ticket aufgabe auftrag quête quêtes tâche misión misiones "
        "tarea encargo задание задания задании квест квеста задача 任务"
    ),
    "thing": _words(
        "item items article product weapon gegenstand item waffe ware artikel objet arme article objeto arma artículo "
        "предмет предмета вещь оружие товар 物品 道具 装备"
    ),
    "object": _words(
        "object objects gameobject objekt kiste truhe chest node coffre cofre объект объекта сундук 物体 箱子"
    ),
}

# What is said of each kind right before or right after its name.
CUES_BEFORE: dict[str, frozenset[str]] = {
    "agent": _words(
        "kill killed killing fight fought attack attacked talk talked speak spoke meet met from by with named "
        "every each any töte getötet gegen bei von mit jeder vom tué tuer parlé parle chez contre avec matado "
        "matar hablé contra убил убить у от 与 和 杀 跟"
    ),
    "task": _words(
        "did do accept accepted complete completed finish finished start started doing take took "
        "taking abandon abandoned retake terminer finir accepté rendre completar terminar aceptado "
        "entregar сдать взять взял выполнить принять выполняю 接 完成 做"
    ),
    "thing": _words(
        "loot looted equip equipped use used using wear got get receive received obtain buy bought pick picked and "
        "bekommen benutzen bekam obtenir reçu équiper utiliser recibí recibir dado получил дал надел купил 掉落 用 使用"
    ),
    "object": _words(
        "open opened click clicked interact touch touched activate reach öffnen anklicken ouvrir cliquer "
        "abrir открыть нажать курсор 打开 点击"
    ),
}
# Words that announce a task where they open a sentence: "In Digging Deep the crew gets lost".
OPENING_CUES = _words("for in during")
CUES_AFTER: dict[str, frozenset[str]] = {
    "agent": _words(
        "attacks attack walks walk dies died casts evades spawns spawn stands says patrols hits runs follows "
        "moves arrived came sent asks gives offers fell respawn aggro greift macht steht läuft stirbt droppt "
        "fehlt frappe attaque meurt introuvable aparece ataca muere está бьёт атакует стоит появляется пришёл "
        "дал умирает 刷新 攻击 打人 对话 不刷新 一直"
    ),
    "task": _words(
        "finished completed complete completes completable completion impossible experience abschließen "
        "abschließbar annehmen valide validée completa completar сдать сдаётся выполняется 无法完成"
    ),
    "thing": _words("dropped drops drop tooltip stats damage droppt tombe dropt выпадает падает 一次 没掉"),
    "object": _words("clickable respawn reappears opens anklicken öffnen открывается 点不开 打不开"),
}

# What stands around someone who gives, sends or reports.
GIVING_BEFORE = _words("from by chez bei vom giver geber donneur у от")
GIVING_AFTER = _words(
    "gives gave sent sends hands handed offers offered asks asked wants tells told gibt gab schickt donne "
    "envoie demande da dio envía pide даёт дал просит послал"
)

# Han characters that usually do not belong to a name: they end a candidate and start the next one.
HAN_BREAKS = frozenset(
    "卖说杀了在是和我你他她它们不没有就都也很这那到从把被让给与或但而吗呢吧啊请个次只后会能可要去来说还一"
)
HAN_LABELS = ("任务", "物品", "道具", "装备", "怪物", "生物", "首领", "物体", "箱子", "人物")
