import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '../base/clock.ts';
import { messageOf, PolicyError, stalled } from '../base/errors.ts';
import { holdSecret } from '../base/redact.ts';
import { type Advance, advance, type RegistrationRecord } from '../engine/advance.ts';
import { CubeSandboxEngine } from '../engine/cubesandbox.ts';
import { E2BEngine } from '../engine/e2b.ts';
import { ENGINE_LABEL } from '../engine/errors.ts';
import { isPinnedImage, settingsHash, templateName } from '../engine/names.ts';
import type { RegisterSpec, RegistryAuth, Resources, SandboxEngine } from '../engine/port.ts';
import type { Engine } from '../protocol/types.ts';
import { EXIT, type ExitCode, type Io } from './io.ts';
import { printable, printableLines } from './terminal.ts';

/** The languages of the platform's runtimes. */
const LANGUAGES = ['python', 'node'] as const;
export type Language = (typeof LANGUAGES)[number];

/** The options of `skillctl platform register`. */
export interface RegisterOptions {
  engine: Engine;
  /** `repository@sha256:<64 hex>`. */
  image: string;
  /** Default: what the image's name contains. */
  language?: Language | undefined;
  url: string;
  /** Files hold secrets, arguments never do: every process of the machine can read those. */
  keyFile?: string | undefined;
  caFile?: string | undefined;
  registryUsername?: string | undefined;
  registryPasswordFile?: string | undefined;
  /** CubeSandbox: false leaves out the CA of its egress proxy. */
  cubeCa: boolean;
  /** CubeSandbox: the registry speaks plain http. */
  plainHttpRegistry: boolean;
  output: 'human' | 'json';
}

/** What `skillctl platform register --output json` prints. */
interface RegisterResult {
  runtime: string;
  templateId: string;
  engine: Engine;
  /** The template's name at the engine. */
  name: string;
  image: string;
}

/** What one sandbox of each language gets (the protocol §6.3). */
const RESOURCES: Record<Language, Resources> = {
  python: { cpuMillis: 1000, memoryMiB: 1024, writableLayerMiB: 2048 },
  node: { cpuMillis: 1000, memoryMiB: 512, writableLayerMiB: 2048 },
};
const POLL_MS = 3000;
/** Failures in a row that pass by themselves, such as an engine that restarts, before the command gives up. */
const MAX_FAILURES = 5;
const MAX_FILE = 1024 * 1024;

function languageOf({ language, image }: RegisterOptions): Language {
  const repository = image.split('@')[0] ?? '';
  const found = language ? [language] : LANGUAGES.filter((one) => repository.toLowerCase().includes(one));
  if (found.length === 1 && found[0]) return found[0];
  throw new Error('the name of the image does not tell its language; add --language python or node');
}

/** A small file's text without the line end; works for /dev/stdin too. */
async function readSmall(path: string, io: Io, signal: AbortSignal): Promise<string> {
  const file = await open(resolve(io.cwd, path)).catch((error: NodeJS.ErrnoException) => {
    throw stalled('PathNotFound', `cannot read ${path} (${error.code ?? 'unknown error'}); check the path`);
  });
  try {
    let text = '';
    for await (const chunk of file.createReadStream({ encoding: 'utf8', signal })) {
      text += chunk;
      if (text.length > MAX_FILE) throw stalled('PathInvalid', `${path} is larger than 1 MiB; give the right file`);
    }
    return text.replace(/\r?\n$/, '');
  } finally {
    await file.close();
  }
}

async function readSecret(path: string, io: Io, signal: AbortSignal): Promise<string> {
  const secret = await readSmall(path, io, signal);
  holdSecret(secret);
  if (secret === '') throw stalled('PathInvalid', `${path} is empty; put the secret into it`);
  return secret;
}

async function registryAuth(options: RegisterOptions, io: Io, signal: AbortSignal): Promise<RegistryAuth | undefined> {
  const { registryUsername: username, registryPasswordFile: file } = options;
  if (username === undefined && file === undefined) return undefined;
  if (username === undefined || file === undefined)
    throw new Error('--registry-username and --registry-password-file belong together; give both');
  return { username, password: await readSecret(file, io, signal) };
}

async function connect(
  options: RegisterOptions,
  io: Io,
  signal: AbortSignal,
): Promise<{ engine: SandboxEngine; dispatcher: Dispatcher }> {
  const value = options.keyFile === undefined ? undefined : await readSecret(options.keyFile, io, signal);
  const ca = options.caFile === undefined ? undefined : await readSmall(options.caFile, io, signal);
  const dispatcher = new Agent(ca === undefined ? {} : { connect: { ca } });
  const key = value === undefined ? undefined : async () => ({ value });
  const connection = { url: options.url, dispatcher, key };
  const { cubeCa: withCubeCA, plainHttpRegistry } = options;
  const engine =
    options.engine === 'e2b'
      ? new E2BEngine(connection)
      : new CubeSandboxEngine({ ...connection, withCubeCA, plainHttpRegistry });
  return { engine, dispatcher };
}

/** The same image always gets the same name, so that a second run finds the first one's template. */
function specOf(options: RegisterOptions, language: Language, auth: RegistryAuth | undefined): RegisterSpec {
  const { engine, image } = options;
  if (!isPinnedImage(image)) {
    const what = `${printable(image.slice(0, 200))} is not pinned`;
    throw new Error(`${what}; write <registry>/<repository>@sha256:<64 hex digits>`);
  }
  const resources = RESOURCES[language];
  const identity = { installation: '', namespace: '', skill: `${engine}-${language}`, engine };
  const imageDigest = image.slice(image.indexOf('@') + 1);
  const name = templateName(`${engine}-${language}`, {
    ...identity,
    imageDigest,
    settings: settingsHash({ resources }),
  });
  return { name, image, resources, registryAuth: auth };
}

type Ready = Extract<Advance, { step: 'ready' }>;

/** One step; undefined when there is something to wait for, the next record when the next step may follow at once. */
async function step(
  engine: SandboxEngine,
  spec: RegisterSpec,
  record: RegistrationRecord,
  say: (line: string) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<Ready | { step: 'again'; record: RegistrationRecord } | undefined> {
  const done = await advance(engine, spec, record, clock.now(), signal);
  switch (done.step) {
    case 'ready':
      return done;
    case 'persist':
      say(`template ${done.ref.templateId}`);
      return { step: 'again', record: { ...record, ref: done.ref, startedAt: clock.now() } };
    case 'failed':
      if (done.failure.logTail) say(done.failure.logTail);
      // Whatever its policy: the same image would end the same way or has waited long enough.
      throw new PolicyError('Stalled', done.failure.reason, done.failure.message);
    case 'wait':
      say(done.progress === undefined ? done.message : `${done.message} (${done.progress} %)`);
      return undefined;
  }
}

/** Drives one registration to its end; failures that pass by themselves are tried again. */
async function drive(
  engine: SandboxEngine,
  spec: RegisterSpec,
  say: (line: string) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<Ready> {
  let record: RegistrationRecord = { startedAt: clock.now(), held: new Set() };
  let failures = 0;
  for (;;) {
    try {
      const done = await step(engine, spec, record, say, clock, signal);
      failures = 0;
      if (done?.step === 'ready') return done;
      if (done) {
        record = done.record;
        continue;
      }
    } catch (error) {
      if (!(error instanceof PolicyError && error.policy === 'Retry') || ++failures >= MAX_FAILURES) throw error;
      say(messageOf(error));
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Tells each line once: a build that takes minutes would repeat it. */
function teller(io: Io): (line: string) => void {
  let last = '';
  return (line) => {
    if (line === last) return;
    last = line;
    io.err(`${printableLines(line)}\n`);
  };
}

/** `skillctl platform register`: makes a template of a platform image and prints its entry of the map `tier1` on `io.out`. */
export async function registerPlatform(
  options: RegisterOptions,
  io: Io,
  clock: Clock,
  signal: AbortSignal,
): Promise<ExitCode> {
  const language = languageOf(options);
  const spec = specOf(options, language, await registryAuth(options, io, signal));
  const { engine, dispatcher } = await connect(options, io, signal);
  try {
    const say = teller(io);
    say(`registering ${spec.name} at ${ENGINE_LABEL[engine.kind]}`);
    const { ref, degraded, duplicates } = await drive(engine, spec, say, clock, signal);
    if (degraded) say(degraded);
    for (const { templateId } of duplicates)
      say(`${templateId} is a second template of this image; remove it at the engine`);
    const runtime = `${engine.kind}::${language}`;
    const result: RegisterResult = {
      runtime,
      templateId: ref.templateId,
      engine: engine.kind,
      name: spec.name,
      image: spec.image,
    };
    const entry = `tier1:\n  ${runtime}: ${ref.templateId}\n`;
    io.out(options.output === 'json' ? `${JSON.stringify(result, undefined, 2)}\n` : entry);
    return EXIT.ok;
  } finally {
    await dispatcher.destroy();
  }
}
