import { readFileSync } from 'node:fs';
import { getCACertificates, rootCertificates } from 'node:tls';
import { Agent } from 'undici';
import { ANNOTATIONS } from './api/labels.ts';
import { SECRETS } from './api/resources.ts';
import type { Clock } from './base/clock.ts';
import { waiting } from './base/errors.ts';
import { holdSecret } from './base/redact.ts';
import { registryCredential } from './build/dockerconfig.ts';
import { HttpRegistry } from './build/registry.ts';
import { type BuildSettings, buildSettingsProblems } from './build/settings.ts';
import type { BuildConfig, EnginesConfig } from './config.build.ts';
import type { EngineSetup } from './controllers/byo/registrations.ts';
import { CubeSandboxEngine } from './engine/cubesandbox.ts';
import { E2BEngine } from './engine/e2b.ts';
import type { EngineKey } from './engine/http.ts';
import type { KubeApi, KubeObject } from './kube/types.ts';
import type { Engine } from './protocol/types.ts';

/** Adapters of builds and engines from the settings; every secret is read by GET on use, so that a rotated one counts at once. */

interface Secret extends KubeObject {
  data?: Record<string, string>;
}

/** Where the operator's own Secrets lie. */
interface Home {
  api: KubeApi;
  namespace: string;
  clock: Clock;
}

const DOCKER_CONFIG = '.dockerconfigjson';
const API_KEY = 'apiKey';

async function secretValue(home: Home, name: string, key: string, signal: AbortSignal) {
  const secret = await home.api.get<Secret>(SECRETS, home.namespace, name, signal);
  const encoded = secret?.data?.[key];
  if (!secret || encoded === undefined) {
    throw waiting(
      'SecretNotFound',
      `Secret "${name}" of namespace "${home.namespace}" ${secret ? `has no key "${key}"` : 'does not exist'}; create it as docs/guides/install.md shows`,
    );
  }
  const value = Buffer.from(encoded, 'base64').toString('utf8').trim();
  holdSecret(value);
  const hosts = secret.metadata.annotations?.[ANNOTATIONS.hosts]?.split(',').map((host) => host.trim().toLowerCase());
  return { value, hosts };
}

const agentFor = (caFile: string | undefined) =>
  caFile
    ? new Agent({ connections: 8, connect: { ca: [...rootCertificates, readFileSync(caFile, 'utf8')] } })
    : undefined;

/**
 * PEM of the authorities for Git where NODE_EXTRA_CA_CERTS adds some to those of the system; undefined: Git's own will do.
 * Reads files, so call it before the work begins.
 */
export function gitAuthorities(): string | undefined {
  const extra = getCACertificates('extra');
  if (extra.length === 0) return undefined;
  const system = getCACertificates('system');
  const usual = system.length > 0 ? system : getCACertificates('bundled');
  return [...usual, ...extra].map((pem) => pem.trim()).join('\n');
}

/** Credential for a repository out of a dockerconfigjson Secret; undefined without a Secret. */
const credentialFrom = (home: Home, secret: string | undefined, host: string) =>
  secret === undefined
    ? undefined
    : async (repository: string, signal: AbortSignal) => {
        const { value, hosts } = await secretValue(home, secret, DOCKER_CONFIG, signal);
        return { ...registryCredential(value, { host, repository }, `Secret "${secret}"`), hosts };
      };

/** The settings of builds as the build room takes them; throws with every problem of the configuration. */
export function buildSettings(config: BuildConfig, installation: string): BuildSettings {
  const { allowAnonymousWrites: _flag, ...rest } = config;
  const settings = { ...rest, installation } as unknown as BuildSettings;
  const problems = buildSettingsProblems(settings);
  if (problems.length > 0) throw new Error(`build settings cannot be used: ${problems.join('; ')}`);
  return settings;
}

/** The registry with the operator's own credential. */
export function registryOf({ registry }: BuildConfig, home: Home): HttpRegistry {
  return new HttpRegistry({
    host: registry.host,
    insecure: registry.insecure,
    ca: registry.caFile ? readFileSync(registry.caFile, 'utf8') : undefined,
    credential: credentialFrom(home, registry.credentialSecret, registry.host),
    clock: home.clock,
  });
}

/** The engines that the settings name. */
export function enginesOf(config: EnginesConfig, host: string, home: Home): Partial<Record<Engine, EngineSetup>> {
  const setups: Partial<Record<Engine, EngineSetup>> = {};
  const { cubesandbox, e2b } = config;
  const connection = (one: { url: string; keySecret?: string | undefined; caFile?: string | undefined }) => ({
    url: one.url,
    dispatcher: agentFor(one.caFile),
    key: keyFrom(home, one.keySecret),
    now: () => home.clock.now(),
  });
  const shared = (one: NonNullable<EnginesConfig['e2b'] | EnginesConfig['cubesandbox']>) => {
    const pullAuth = credentialFrom(home, one.pullSecret, host);
    return { maxConcurrent: one.maxConcurrent, ...(pullAuth ? { pullAuth } : {}) };
  };
  if (cubesandbox) {
    const { withCubeCA, plainHttpRegistry, resources } = cubesandbox;
    const engine = new CubeSandboxEngine({ ...connection(cubesandbox), withCubeCA, plainHttpRegistry });
    setups.cubesandbox = { engine, settings: { resources }, ...shared(cubesandbox) };
  }
  if (e2b) {
    const { startCommand, readyCommand } = e2b;
    const { writableLayerMiB: _cubeOnly, ...resources } = e2b.resources;
    const engine = new E2BEngine(connection(e2b));
    setups.e2b = { engine, settings: { resources, startCommand, readyCommand }, ...shared(e2b) };
  }
  return setups;
}

const keyFrom = (home: Home, secret: string | undefined) =>
  secret === undefined
    ? undefined
    : (signal: AbortSignal): Promise<EngineKey> => secretValue(home, secret, API_KEY, signal);
