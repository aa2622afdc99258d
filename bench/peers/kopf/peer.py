"""The keeper as a Python operator, with kopf.

Why it is fair: it uses kopf at its lowest and quickest level, and nothing that would hold it back is left at a default. Tuned:
kopf gets a session that asks for metadata alone, which our writes share; lists are streamed; raw events (`on.event`), so that
nothing is written on Nodes and no differences are computed; a heartbeat ends in the filter; records are in a dict, filled
before the first node is looked at and kept by the answers to our own writes; uvloop and orjson; no events, peering or scanning.
"""
import asyncio
import itertools
import os
from typing import NamedTuple

import aiohttp
import kopf
import orjson

import kept

NAMESPACE = os.environ['NAMESPACE']
NODES = '/api/v1/nodes'
RECORDS = f'/api/v1/namespaces/{NAMESPACE}/configmaps'
OURS = {'app.kubernetes.io/managed-by': 'peer'}
CONCURRENCY = 64
PAGE = 2000
# kopf does not retry what fails on a raw event, so these are as for its own requests.
BACKOFFS = (0.1, 1, 1, 2, 3, 5, 8, 13, 21)

PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json'
WHOLE = {'Accept': 'application/json'}
MERGE = {'Content-Type': 'application/merge-patch+json'}
JSON = {'Content-Type': 'application/json'}


class Record(NamedTuple):
    uid: str
    labels: str
    version: str


class NoDiffs(kopf.DiffBaseStorage):
    """Raw events are not compared with what was last handled, so nothing need be copied for that."""

    def build(self, **_):
        return {}

    def fetch(self, **_):
        return None

    def store(self, **_):
        pass


records: dict[str, Record] = {}
# The incarnation of each name that was seen last: kopf handles two of them side by side.
alive: dict[str, str] = {}
session: aiohttp.ClientSession
server: str


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
    settings.persistence.diffbase_storage = NoDiffs()
    # A worker that has nothing to do makes room for the next node at once.
    settings.queueing.worker_limit = CONCURRENCY
    settings.queueing.idle_timeout = 0.01

    global session, server
    login = kopf.login_with_kubeconfig(settings=settings)
    server = login.server
    connector = aiohttp.TCPConnector(limit=0, ssl=login.as_ssl_context())
    headers = {**login.as_http_headers(), 'Accept': PARTIAL}
    session = aiohttp.ClientSession(server, connector=connector, headers=headers)
    page = {'metadata': {'continue': ''}}
    while page:
        query = {'labelSelector': 'app.kubernetes.io/managed-by=peer', 'limit': PAGE, 'continue': page['metadata']['continue']}
        page = await call('GET', RECORDS, params=query, headers=WHOLE)
        for item in page['items']:
            remember(item)
        page = page if page['metadata'].get('continue') else None


@kopf.on.login()
async def login(**_):
    return kopf.AiohttpSession(aiohttp_session=session, server=server)


def differs(event, **_):
    """Whether a node is other than its record says. All else, heartbeats above all, ends here."""
    node = event['object']['metadata']
    name, uid = node['name'], node['uid']
    if event['type'] == 'DELETED':
        if alive.get(name) == uid:
            del alive[name]
        return False
    alive[name] = uid
    record = records.get(name)
    text = kept.text(node.get('labels', {}))
    return text != '{}' if record is None else (record.uid, record.labels) != (uid, text)


@kopf.on.event('nodes', when=differs)
async def keep(event, logger, **_):
    node = event['object']['metadata']
    for delay in itertools.chain(BACKOFFS, itertools.repeat(BACKOFFS[-1])):
        try:
            while alive.get(node['name']) == node['uid'] and not await settle(node):
                pass
            return
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            logger.warning(f'{error!r}, trying again in {delay}s')
            await asyncio.sleep(delay)


async def settle(node):
    """Gives a node what it lacks and writes its record. Says whether that is done; if not, the record was read anew."""
    name, uid, labels = node['name'], node['uid'], node.get('labels', {})
    record = records.get(name)
    if record is not None and record.uid != uid:
        missing = {key: value for key, value in orjson.loads(record.labels).items() if key not in labels}
        if missing:
            patch = {'metadata': {'resourceVersion': node['resourceVersion'], 'labels': missing}}
            if await call('PATCH', f'{NODES}/{name}', patch, headers=MERGE) is None:
                return True  # It has changed or is gone: the event that says so is on its way.
            labels = labels | missing
    text = kept.text(labels)
    if text == '{}' if record is None else (record.uid, record.labels) == (uid, text):
        return True
    data = {'uid': uid, 'labels': text}
    fresh = {'metadata': {'name': f'node-{name}', 'labels': OURS}, 'data': data}
    if record is None:
        written = await call('POST', RECORDS, fresh, headers=JSON)
    else:
        fresh['metadata']['resourceVersion'] = record.version
        written = await call('PUT', f'{RECORDS}/node-{name}', fresh, headers=JSON)
    if written is not None:
        records[name] = Record(uid, text, written['metadata']['resourceVersion'])
        return True
    found = await call('GET', f'{RECORDS}/node-{name}', headers=WHOLE)
    if found is None:
        records.pop(name, None)
    else:
        remember(found)
    return False


def remember(item):
    meta, data = item['metadata'], item['data']
    records[meta['name'].removeprefix('node-')] = Record(data['uid'], data['labels'], meta['resourceVersion'])


async def call(method, path, body=None, **options):
    """One request; nothing where the object is another by now (409) or gone (404)."""
    data = None if body is None else orjson.dumps(body)
    async with session.request(method, path, data=data, **options) as response:
        answer = await response.read()
        if response.status in (404, 409):
            return None
        response.raise_for_status()
        return orjson.loads(answer)
