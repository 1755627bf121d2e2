import type { KeySpace } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/port.ts';
import { emptyInventory, type Inventory, takeStock } from '../../store/sweep.ts';

/** What this installation has in the bucket, by one paged list that ends where its uploads begin: they are nobody's to heal or to sweep. */
export async function readInventory(store: ObjectStore, space: KeySpace, signal: AbortSignal): Promise<Inventory> {
  const inventory = emptyInventory();
  for await (const page of store.list(space.root, signal)) {
    for (const info of page) takeStock(inventory, space, info);
    if (page.at(-1)?.key.startsWith(`${space.root}uploads/`)) break;
  }
  return inventory;
}
