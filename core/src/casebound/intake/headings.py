"""What issue templates call the parts of a report: heading text → source kind, in six languages.

A heading is compared by `heading_key`, on both sides, so a table entry may be written in any case. The table is data:
`build.json` freezes the whole of it beside the case, so that a later release may add words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from unicodedata import normalize

from casebound.contracts.case import SourceKind

MAX_HEADING = 120
"""A line of more code points than this is no heading that any table could hold."""

# Explicit ranges, never `str.isalnum`: what counts as a letter differs between releases of Python.
_SYMBOLS = (
    "\\s#*_`~:;.,?!'\"<>|/=+\\-\\[\\]"
    "\u2010-\u2015\u2022\u2026\u2018-\u201f\u00ab\u00bb\u00bf\u00a1\u3001\u3002\u300c-\u3011\uff01\uff0c\uff1a\uff1b\uff1f"
    "\u200b-\u200f\u2060\ufeff\ufe0e\ufe0f\u2190-\u2bff\U0001f000-\U0001faff"
)
_LEAD = re.compile(f"[{_SYMBOLS}0-9]*")
_TRAIL = re.compile(f"[{_SYMBOLS}]*")
_REMARK_CLOSED = (")", "\uff09")

_TABLE: dict[SourceKind, dict[str, str]] = {
    "observation": {
        "en": """
            description | bug description | issue description | problem description | describe the bug
            describe the issue | describe the problem | description of the issue | description of the problem
            description of the bug | summary | overview | problem | the problem | what is the problem | issue | bug
            bug report | bug details | issue details | details | symptoms | current behavior | current behaviour
            the current behavior | what is the current behavior | what is the current bug behavior | actual behavior
            actual behaviour | observed behavior | observed behaviour | current | actual | observed | current result
            current results | actual result | actual results | actual outcome | observed result | observed results
            current state | what happened | what happens | what happens instead | what is happening
            what actually happened | what actually happens | what went wrong | what do you see instead
            what did you see instead | what did you see | what is wrong | error | error message | error messages
            error output | log | logs | log output | relevant log output | relevant logs and/or screenshots
            crash log | stack trace | stacktrace | traceback | output | console output
        """,
        "de": """
            beschreibung | fehlerbeschreibung | problembeschreibung | beschreibung des fehlers
            beschreibung des problems | zusammenfassung | problem | das problem | fehler | symptome
            aktuelles verhalten | tatsächliches verhalten | beobachtetes verhalten | derzeitiges verhalten
            momentanes verhalten | jetziges verhalten | ist-verhalten | ist-zustand | ist | aktuell | tatsächlich
            tatsächliches ergebnis | aktuelles ergebnis | beobachtetes ergebnis | was passiert | was ist passiert
            was geschieht | was ist das problem | was passiert stattdessen | fehlermeldung | fehlermeldungen
            protokoll | protokolle | logs | ausgabe
        """,
        "fr": """
            description | description du bug | description du bogue | description du problème | résumé
            décrivez le bug | décrire le bug | problème | le problème | bug | bogue | anomalie | symptômes
            comportement actuel | comportement observé | comportement constaté | comportement réel | résultat actuel
            résultat observé | résultat obtenu | résultat constaté | résultat réel | que se passe-t-il
            que s'est-il passé | ce qui se passe | ce qui s'est passé | actuel | actuellement | observé | obtenu
            message d'erreur | messages d'erreur | erreur | journaux | journal
        """,
        "es": """
            descripción | descripción del error | descripción del problema | descripción del bug | resumen
            describe el error | describe el problema | problema | el problema | error | fallo | síntomas
            comportamiento actual | comportamiento observado | comportamiento real | resultado actual
            resultado observado | resultado obtenido | resultado real | resultados actuales | qué ocurre | qué pasa
            qué sucede | qué ocurrió | qué pasó | qué sucedió | qué ha pasado | actual | actualmente | observado
            obtenido | mensaje de error | mensajes de error | registros | registro
        """,
        "ru": """
            описание | описание ошибки | описание проблемы | описание бага | краткое описание | опишите ошибку
            опишите проблему | проблема | суть проблемы | ошибка | баг | текущее поведение | фактическое поведение
            наблюдаемое поведение | реальное поведение | текущий результат | фактический результат
            полученный результат | реальный результат | что происходит | что произошло | что случилось | что не так
            сейчас | на данный момент | фактически | факт | сообщение об ошибке | текст ошибки | лог | логи | журнал
        """,
        "zh": """
            描述 | 问题描述 | 错误描述 | bug 描述 | bug描述 | 缺陷描述 | 問題描述 | 错误說明 | 問題說明 | 问题说明
            概述 | 摘要 | 问题 | 問題 | 当前行为 | 當前行為 | 目前行为 | 目前行為 | 现有行为 | 實際行為 | 实际行为
            当前的行为 | 实际结果 | 實際結果 | 当前结果 | 實際情況 | 实际情况 | 当前情况 | 当前现象 | 问题现象
            现象 | 发生了什么 | 發生了什麼 | 实际 | 目前 | 当前 | 错误信息 | 錯誤訊息 | 报错信息 | 错误日志 | 日志
            日誌
        """,
    },
    "expectation": {
        "en": """
            expected behavior | expected behaviour | the expected behavior | what is the expected behavior
            what is the expected correct behavior | what is expected | expected | expected result | expected results
            expected outcome | expected output | expectation | expectations | what did you expect
            what did you expect to happen | what did you expect to see | what do you expect
            what do you expect to happen | what you expected to happen | what i expected to happen
            what was expected | what should happen | what should have happened | what should happen instead
            what it should do | how it should work | how should it work | should be | desired behavior
            desired behaviour | desired result | wanted | wanted behavior | wanted behaviour | intended behavior
            intended behaviour | correct behavior | correct behaviour
        """,
        "de": """
            erwartetes verhalten | erwünschtes verhalten | gewünschtes verhalten | korrektes verhalten
            richtiges verhalten | soll-verhalten | soll-zustand | soll | erwartetes ergebnis | gewünschtes ergebnis
            erwartung | erwartungen | erwartet | was sollte passieren | was sollte geschehen | was soll passieren
            was wird erwartet | was hast du erwartet | was haben sie erwartet | was wurde erwartet
            wie es sein sollte
        """,
        "fr": """
            comportement attendu | comportement souhaité | comportement voulu | comportement correct
            résultat attendu | résultats attendus | résultat souhaité | attendu | attente | attentes
            que devrait-il se passer | ce qui devrait se passer | ce qui était attendu | qu'attendiez-vous
            que vous attendiez-vous à voir | à quoi vous attendiez-vous
        """,
        "es": """
            comportamiento esperado | comportamiento deseado | comportamiento correcto | resultado esperado
            resultados esperados | resultado deseado | esperado | expectativa | expectativas | qué debería ocurrir
            qué debería pasar | qué debería suceder | qué esperabas | qué se esperaba | qué esperabas que pasara
        """,
        "ru": """
            ожидаемое поведение | желаемое поведение | правильное поведение | корректное поведение
            ожидаемый результат | ожидаемые результаты | желаемый результат | ожидание | ожидания | ожидается
            ожидалось | что ожидалось | что должно происходить | что должно быть | как должно быть
            как должно работать | должно быть | что вы ожидали
        """,
        "zh": """
            预期行为 | 預期行為 | 期望行为 | 期望行為 | 期待行为 | 期望的行为 | 预期的行为 | 正确行为 | 正確行為
            预期结果 | 預期結果 | 期望结果 | 期望結果 | 期待结果 | 预期 | 預期 | 期望 | 期待 | 应该发生什么
            應該發生什麼 | 你期望发生什么 | 您期望的结果 | 预期情况
        """,
    },
    "reproduction": {
        "en": """
            steps to reproduce | steps to reproduce the problem | steps to reproduce the issue
            steps to reproduce the bug | steps to reproduce the behavior | steps to reproduce the behaviour
            steps to replicate | reproduction | reproduction steps | repro | repro steps | reproduce | to reproduce
            how to reproduce | how to reproduce the bug | how to reproduce the issue | how to reproduce the problem
            how to repeat | how to test | how can we reproduce it | how can we reproduce the issue
            how do we reproduce | what steps will reproduce the problem | minimal reproducible example
            minimal reproduction | minimal example | reproducible example | reproducible test case
            reproducible code sample | reproduction code | code to reproduce | code sample | test case | steps
            what did you do | what were you doing | link to the code that reproduces this issue
        """,
        "de": """
            schritte zum reproduzieren | schritte zur reproduktion | schritte zum nachstellen
            schritte zum nachvollziehen | reproduktionsschritte | reproduktion | reproduzieren
            so lässt sich der fehler reproduzieren | wie reproduzieren | nachstellen | schritte | vorgehen
            was hast du getan | was haben sie getan
        """,
        "fr": """
            étapes pour reproduire | étapes de reproduction | étapes pour reproduire le problème
            étapes pour reproduire le bug | comment reproduire | pour reproduire | reproduction
            procédure de reproduction | étapes | qu'avez-vous fait
        """,
        "es": """
            pasos para reproducir | pasos para reproducir el error | pasos para reproducir el problema
            pasos para reproducirlo | pasos de reproducción | cómo reproducir | cómo reproducirlo | para reproducir
            reproducción | pasos | qué hiciste
        """,
        "ru": """
            шаги воспроизведения | шаги для воспроизведения | шаги по воспроизведению
            шаги для воспроизведения проблемы | шаги для воспроизведения ошибки | как воспроизвести
            как воспроизвести ошибку | как воспроизвести проблему | воспроизведение | порядок воспроизведения
            способ воспроизведения | шаги | действия | что вы делали
        """,
        "zh": """
            重现步骤 | 重現步驟 | 复现步骤 | 復現步驟 | 再现步骤 | 重现方法 | 复现方法 | 如何重现 | 如何復現
            如何复现 | 重现 | 复现 | 操作步骤 | 操作步驟 | 步骤 | 步驟 | 最小复现 | 重现链接 | 复现代码
        """,
    },
    "environment": {
        "en": """
            environment | your environment | environment information | environment info | environment details
            test environment | version | versions | version information | version info | affected version
            affected versions | affects version | product version | package version | software version | app version
            application version | client version | server version | database version | library version
            which version | which version are you using | what version are you using | operating system
            operating system and version | os | os version | os and version | platform | platforms | system
            system info | system information | system details | device | devices | hardware | browser | browsers
            browser version | browser and version | what browsers are you seeing the problem on | configuration
            setup | build | build number | branch | branches | branch or commit | commit | commit hash | revision
            rev. hash/commit | installation method | installed modules | modules | customizations | custom changes
        """,
        "de": """
            umgebung | testumgebung | systemumgebung | version | versionen | softwareversion | betroffene version
            betroffene versionen | programmversion | betriebssystem | system | systeminformationen | plattform
            gerät | browser | konfiguration | installation | zweig
        """,
        "fr": """
            environnement | votre environnement | environnement de test | version | versions | version concernée
            versions concernées | version du logiciel | système d'exploitation | système | informations système
            plateforme | plate-forme | appareil | navigateur | configuration | branche
        """,
        "es": """
            entorno | entorno de pruebas | ambiente | versión | versiones | versión afectada | versiones afectadas
            sistema operativo | sistema | información del sistema | plataforma | dispositivo | navegador
            configuración | rama
        """,
        "ru": """
            окружение | среда | тестовое окружение | версия | версии | версия по | версия программы
            версия приложения | операционная система | ос | система | информация о системе | платформа | устройство
            браузер | конфигурация | ветка | коммит | ревизия
        """,
        "zh": """
            环境 | 環境 | 环境信息 | 環境資訊 | 运行环境 | 執行環境 | 测试环境 | 版本 | 版本号 | 版本信息 | 软件版本
            操作系统 | 作業系統 | 系统 | 系统信息 | 系统环境 | 平台 | 设备 | 裝置 | 浏览器 | 瀏覽器 | 配置 | 分支
            提交
        """,
    },
    "reference": {
        "en": """
            source | sources | reference | references | link | links | external links | related links
            related issues | related issue | related tickets | see also | proof | proofs | evidence | documentation
            screenshot | screenshots | screenshots or videos | screenshots/videos | videos | video | attachments
            media
        """,
        "de": """
            quelle | quellen | quellenangabe | quellenangaben | referenz | referenzen | verweis | verweise | link
            links | nachweis | nachweise | beleg | belege | siehe auch | screenshots | bildschirmfotos | anhänge
        """,
        "fr": """
            source | sources | référence | références | lien | liens | preuve | preuves | voir aussi
            captures d'écran | capture d'écran | pièces jointes
        """,
        "es": """
            fuente | fuentes | referencia | referencias | enlace | enlaces | prueba | pruebas | véase también
            capturas de pantalla | captura de pantalla | adjuntos
        """,
        "ru": """
            источник | источники | ссылка | ссылки | доказательство | доказательства | пруф | пруфы | см. также
            материалы | скриншот | скриншоты | снимки экрана | вложения
        """,
        "zh": """
            来源 | 來源 | 参考 | 參考 | 参考资料 | 參考資料 | 参考链接 | 相关链接 | 链接 | 連結 | 证据 | 證據 | 出处
            出處 | 截图 | 截圖 | 屏幕截图 | 附件
        """,
    },
    "text": {
        "en": """
            additional context | additional information | additional info | additional details | additional notes
            additional comments | extra notes | extra information | further information | other information
            any other information | any other comments | anything else | other | note | notes | remarks
            possible solution | possible solutions | possible fix | possible fixes | proposed solution
            proposed fix | suggested solution | suggested fix | solution | workaround | workarounds | severity
            priority | impact | checklist | prerequisites | before submitting | preflight checklist
            code of conduct
        """,
        "de": """
            zusätzliche informationen | weitere informationen | zusätzliche angaben | weitere angaben | sonstiges
            anmerkung | anmerkungen | hinweis | hinweise | bemerkung | bemerkungen | mögliche lösung
            lösungsvorschlag | workaround | schweregrad | priorität | checkliste
        """,
        "fr": """
            informations complémentaires | informations supplémentaires | contexte supplémentaire | autres
            remarque | remarques | notes | solution possible | solution proposée | contournement | gravité
            priorité
        """,
        "es": """
            información adicional | contexto adicional | más información | otros | nota | notas | observaciones
            comentarios adicionales | posible solución | solución propuesta | solución alternativa | gravedad
            prioridad
        """,
        "ru": """
            дополнительная информация | дополнительно | дополнительный контекст | прочее | примечание | примечания
            заметки | возможное решение | предлагаемое решение | обходной путь | серьёзность | серьезность
            приоритет
        """,
        "zh": """
            其他信息 | 其他資訊 | 附加信息 | 补充信息 | 补充说明 | 補充說明 | 额外信息 | 其他 | 备注 | 備註
            可能的解决方案 | 建议方案 | 解决方案 | 严重程度 | 优先级
        """,
    },
}


def heading_key(text: str) -> str:
    """Return the form in which headings are compared.

    NFC and casefolded; marks, numbers and pictures in front, marks at the end and one closing remark in parentheses
    (`Branch(es)`, `Source (if any)`) removed; runs of blanks are one space. A heading that is longer than
    `MAX_HEADING`, or holds nothing but marks, has the empty key, which no table holds.
    """
    if len(text) > MAX_HEADING:
        return ""
    text = _without_marks(normalize("NFC", text).replace("\u2019", "'"))
    if text.endswith(_REMARK_CLOSED):
        opened = max(text.rfind("("), text.rfind("\uff08"))
        text = _without_marks(text[:opened]) if opened > 0 else text
    return " ".join(text.casefold().split())


def _without_marks(text: str) -> str:
    lead = _LEAD.match(text)
    text = text[lead.end() :] if lead else text
    trail = _TRAIL.match(text[::-1])
    return text[: len(text) - trail.end()] if trail else text


def derive_builtin_headings() -> dict[str, SourceKind]:
    """Return the built-in table by key, sorted. Two kinds for one key are a fault of the table that a test finds."""
    return dict(_builtin())


def is_builtin_heading(text: str) -> bool:
    """Tell whether the built-in table holds this heading."""
    return heading_key(text) in _builtin()


def builtin_words() -> Iterator[tuple[SourceKind, str, str]]:
    """Yield (kind, language, word) of the built-in table."""
    for kind, languages in _TABLE.items():
        for language, words in languages.items():
            for line in words.strip().splitlines():
                for word in line.split("|"):
                    yield kind, language, word.strip()


@cache
def _builtin() -> Mapping[str, SourceKind]:
    return dict(sorted((heading_key(word), kind) for kind, _, word in builtin_words()))
