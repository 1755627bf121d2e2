import type { Page } from './answers.ts';
import type { Scope } from './scope.ts';
import type { KubeObject, Resource } from './types.ts';

/** Objects of a full page: parsing many more at once would hold up the event loop for over 20 ms. */
export const PAGE = 250;

/** The paged list of the API, for reads that must not come from a cache. */
export interface Lister {
  listPage<T extends KubeObject>(
    resource: Resource,
    scope: Scope,
    page: { limit: number; next?: string | undefined },
    signal: AbortSignal,
  ): Promise<Page<T>>;
}

/** The objects of a list, page by page; rejects with the KubeError of a page. */
export async function* pagesOf<T extends KubeObject>(
  api: Lister,
  resource: Resource,
  scope: Scope,
  signal: AbortSignal,
): AsyncGenerator<T[]> {
  let next: string | undefined;
  do {
    const page: Page<T> = await api.listPage<T>(resource, scope, { limit: PAGE, next }, signal);
    yield page.items;
    next = page.next;
  } while (next !== undefined);
}
