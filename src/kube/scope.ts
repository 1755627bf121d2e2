import type { Resource } from './types.ts';

/** What a list and its watch cover; one value builds both URLs, so that they can never differ. */
export interface Scope {
  /** Absent: all namespaces (or a cluster-scoped resource). */
  namespace?: string;
  /** As `kubectl -l` takes it. */
  labelSelector?: string;
  fieldSelector?: string;
}

const segment = (text: string): string => {
  // A dot segment would be resolved away by the URL parser and address another resource.
  if (text === '' || text === '.' || text === '..') throw new TypeError(`"${text}" cannot be part of an API path`);
  return encodeURIComponent(text);
};

/** Path of a collection, `/apis/<group>/<version>[/namespaces/<ns>]/<plural>`. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? '/api' : `/apis/${segment(resource.group)}`;
  const scope = resource.namespaced && namespace ? `/namespaces/${segment(namespace)}` : '';
  return `${root}/${segment(resource.version)}${scope}/${segment(resource.plural)}`;
}

/** Path of one object, with its subresource. Throws TypeError on an empty or dot name. */
export function objectPath(resource: Resource, namespace: string, name: string, subresource?: string): string {
  if (resource.namespaced && namespace === '') throw new TypeError(`${resource.kind} "${name}" needs a namespace`);
  const tail = subresource ? `/${segment(subresource)}` : '';
  return `${collectionPath(resource, namespace)}/${segment(name)}${tail}`;
}

/** The selectors of a scope plus `extra`, as a query string with its `?` (or nothing). undefined values are left out. */
export function queryOf(scope: Scope, extra: Record<string, string | number | boolean | undefined> = {}): string {
  const query = new URLSearchParams();
  if (scope.labelSelector) query.set('labelSelector', scope.labelSelector);
  if (scope.fieldSelector) query.set('fieldSelector', scope.fieldSelector);
  for (const [name, value] of Object.entries(extra)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  return query.size > 0 ? `?${query}` : '';
}
