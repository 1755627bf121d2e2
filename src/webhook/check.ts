import { createHash, createHmac, type Hmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Proof } from './claim.ts';

/** How far a signed time may be away from the clock of this machine, in seconds (the tolerance of Standard Webhooks). */
const TOLERANCE_SECONDS = 5 * 60;
const STANDARD_PREFIX = 'whsec_';

/** Takes the body as it arrives and says at its end whether the proof holds; never keeps the body. */
export interface Check {
  update(chunk: Uint8Array): void;
  /** To be called once, after the last byte. */
  holds(): boolean;
}

const sameBytes = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

class HmacCheck implements Check {
  readonly #hmac: Hmac;
  readonly #wanted: readonly Buffer[];
  readonly #valid: boolean;

  /** `valid` false: nothing holds, at the same cost. */
  constructor(key: string | Buffer, prefix: string, wanted: readonly Buffer[], valid = true) {
    this.#hmac = createHmac('sha256', key).update(prefix);
    this.#wanted = wanted;
    this.#valid = valid;
  }

  update(chunk: Uint8Array): void {
    this.#hmac.update(chunk);
  }

  holds(): boolean {
    const mac = this.#hmac.digest();
    let found = false;
    for (const wanted of this.#wanted) found = sameBytes(mac, wanted) || found;
    return found && this.#valid;
  }
}

const DECOY_KEY = randomBytes(32);

/** A check that fails, for a source that does not exist or has no token: it takes as long as one of a source that does. */
export const decoy = (): Check => new HmacCheck(DECOY_KEY, '', [randomBytes(32)], false);

/**
 * The check of a delivery against a token; one that fails when no proof fits the form of the token.
 * `nowSeconds` is compared with a signed time, which may be five minutes off.
 */
export function checkOf(proofs: readonly Proof[], token: string, nowSeconds: number): Check {
  const fresh = (at: number | undefined) => at === undefined || Math.abs(nowSeconds - at) <= TOLERANCE_SECONDS;
  const signed = token.startsWith(STANDARD_PREFIX) ? proofs.find(({ scheme }) => scheme === 'standard') : undefined;
  const proof = signed ?? proofs.find(({ scheme }) => scheme !== 'standard');
  switch (proof?.scheme) {
    case 'standard': {
      const key = Buffer.from(token.slice(STANDARD_PREFIX.length), 'base64');
      return new HmacCheck(key, proof.prefix, proof.macs, fresh(proof.at) && key.length > 0);
    }
    case 'hmac':
      return new HmacCheck(token, proof.prefix, [proof.mac], fresh(proof.at));
    case 'token': {
      // Hashes have one length: the comparison tells nothing about that of the token.
      const same = sameBytes(sha256(proof.token), sha256(token));
      return { update: () => undefined, holds: () => same };
    }
    default:
      return decoy();
  }
}
