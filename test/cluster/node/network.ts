/** The addresses of one run with a node: everything lies in one range of 65,536 addresses, so that runs side by side share nothing. */
export interface NodeNetwork {
  /** Name of the interface on this machine's side; the kernel lets only one run have it. */
  interface: string;
  /** This machine's address on the link to the node. */
  hostAddress: string;
  nodeAddress: string;
  /** The link, the pods and the Services, each as `<address>/<prefix length>`. */
  link: string;
  podRange: string;
  serviceRange: string;
  /** Address of the Service `kubernetes`. */
  serviceAddress: string;
  /** Where pods ask for names. */
  dnsAddress: string;
}

const FIRST = 200;
const COUNT = 50;

/** Indices of all networks, beginning somewhere in the middle: two runs that start together rarely want the same one. */
export const networkIndices = (start: number): number[] =>
  Array.from({ length: COUNT }, (_, i) => FIRST + ((start + i) % COUNT));

/** The network with an index from `networkIndices`. */
export function networkOf(index: number): NodeNetwork {
  return {
    interface: `skop-node${index}`,
    hostAddress: `10.${index}.0.1`,
    nodeAddress: `10.${index}.0.2`,
    link: `10.${index}.0.0/30`,
    podRange: `10.${index}.1.0/24`,
    serviceRange: `10.${index}.2.0/24`,
    serviceAddress: `10.${index}.2.1`,
    dnsAddress: `10.${index}.2.10`,
  };
}

function bounds(destination: string): [number, number] {
  const [address = '', length = '32'] = destination.split('/');
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(length));
  const first = Math.floor(value / size) * size;
  return [first, first + size - 1];
}

/** True when a route of this machine (`10.0.0.0/8`, `10.0.0.1`, `default`) leads into the network: somebody else uses it. */
export function isTaken(index: number, destinations: readonly string[]): boolean {
  const [first, last] = bounds(`10.${index}.0.0/16`);
  return destinations
    .filter((destination) => destination !== 'default')
    .map(bounds)
    .some(([from, to]) => from <= last && to >= first);
}
