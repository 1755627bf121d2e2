import { defineConfig } from 'vitest/config';

const shared = { pool: 'threads', isolate: false } as const;
// Real servers on a machine that may be busy: a second look in CI tells a slow disk from a defect. Never in development.
const onRealParts = { ...shared, retry: process.env.CI ? 1 : 0 };

export default defineConfig({
  test: {
    reporters: ['default'],
    projects: [
      // Vitest wants projects with another number of workers in another group; groups run one after the other.
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...onRealParts,
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/contract/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...onRealParts,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
