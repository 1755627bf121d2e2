import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { PolicyError } from '../base/errors.ts';
import { registryCredential } from '../build/dockerconfig.ts';
import { EXIT } from '../build/exits.ts';
import { imageTag } from '../build/names.ts';
import { type BuildResult, formatResult } from '../build/result.ts';
import type { Network } from './download.ts';
import { JobError } from './failure.ts';
import { copyLayout } from './layout.ts';
import { type SkopeoPush, skopeoPush } from './skopeo.ts';

/** What `push` is told. */
export interface PushOptions {
  /** Directory that the build left: an OCI layout. */
  layout: string;
  /** Directory of our own, on a volume that the build never saw. */
  work: string;
  /** `<host>/<repository>`; the tag follows from the digest. */
  image: string;
  maxBytes: number;
  /** File that takes the result: the termination message of the container. */
  result: string;
  /** Docker config with the push credential; absent: none is needed. */
  credential?: string | undefined;
  insecure: boolean;
  /** Directory with ca.crt. */
  certificates?: string | undefined;
  network: Network;
  /** Program that pushes. */
  skopeo: string;
}

const TRIES = 4;
const FIRST_DELAY_MS = 2000;
const MAX_CREDENTIAL_BYTES = 256 * 1024;

function splitImage(image: string): { host: string; repository: string } {
  const [, host, repository] = /^([^/@\s]+)\/([a-z0-9._/-]+)$/.exec(image) ?? [];
  if (host && repository) return { host, repository };
  throw new JobError(EXIT.Usage, '--image must be host/repository');
}

async function readCredential(path: string): Promise<string> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (size <= MAX_CREDENTIAL_BYTES) return await file.readFile('utf8');
  throw new JobError(EXIT.PushDenied, 'the push Secret is larger than 256 KiB');
}

/** Writes a Docker config that holds the one entry of the registry, without helpers that skopeo would run. */
async function writeAuth(options: PushOptions, target: { host: string; repository: string }): Promise<string> {
  const file = join(options.work, 'auth.json');
  let auths = {};
  if (options.credential !== undefined) {
    const text = await readCredential(options.credential);
    const { username, password } = registryCredential(text, target, 'the push Secret');
    auths = { [target.host]: { auth: Buffer.from(`${username}:${password}`).toString('base64') } };
  }
  await writeFile(file, JSON.stringify({ auths }), { mode: 0o600 });
  return file;
}

async function pushPatiently(push: SkopeoPush, clock: Clock, signal: AbortSignal): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await skopeoPush(push, signal);
    } catch (error) {
      const again = error instanceof JobError && error.exitCode === EXIT.PushUnavailable && tries < TRIES;
      if (!again) throw error;
    }
    await clock.sleep(FIRST_DELAY_MS * 4 ** (tries - 1), signal);
  }
}

/**
 * Step three of a build: takes the image over and verifies it, and only then opens the credential and pushes.
 * Writes `{digest, size}` as the result and answers with it. Throws JobError.
 */
export async function pushImage(options: PushOptions, clock: Clock, signal: AbortSignal): Promise<BuildResult> {
  const target = splitImage(options.image);
  const [layout, scratch] = [join(options.work, 'image'), join(options.work, 'scratch')];
  await rm(layout, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  const result = await copyLayout(options.layout, layout, options.maxBytes, signal);
  const authFile = await writeAuth(options, target).catch((error: unknown) => {
    if (!(error instanceof PolicyError)) throw error;
    throw new JobError(EXIT.PushDenied, error.message);
  });
  const { insecure, certificates, network, skopeo: program } = options;
  const destination = `${options.image}:${imageTag(result.digest)}`;
  try {
    const push = { program, layout, destination, authFile, scratch, insecure, certificates, network };
    const pushed = await pushPatiently(push, clock, signal);
    if (pushed !== result.digest)
      throw new JobError(EXIT.PushUnavailable, 'skopeo pushed another digest than the verified one');
  } finally {
    await rm(authFile, { force: true });
  }
  await writeFile(options.result, formatResult(result));
  return result;
}
