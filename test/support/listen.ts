import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port of the loopback address; `host` is `127.0.0.1:<port>`. Closing cuts what is open. */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<{ host: string; close: () => Promise<void> }> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
